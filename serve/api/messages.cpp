#include "serve/api/messages.h"

#include <algorithm>

#include "base/quoted.h"
#include "serve/api/content_text.h"
#include "serve/api/error.h"

namespace knap {
namespace {

std::string required_string(Fields& fields, std::string_view name) {
    const auto text = fields.string(name);
    if (!text) {
        bad_field(fields.full_name(name), "expected a string, found none");
    }
    return *text;
}

const Json& required_object(const Json& value, const std::string& field) {
    if (!value.is_object()) {
        bad_field(field, "expected an object, found ", kind_of(value));
    }
    return value;
}

ToolCall read_tool_call(const Json& value, const std::string& field) {
    Fields call(required_object(value, field), field + ".");
    const Json* function = call.object("function");
    if (function == nullptr) {
        bad_field(field + ".function", "expected an object, found none");
    }
    Fields inner(*function, field + ".function.");
    return {.id = call.string("id").value_or(""),
            .name = required_string(inner, "name"),
            .arguments = inner.string("arguments").value_or("{}")};
}

std::vector<ToolCall> read_tool_calls(Fields& message) {
    std::vector<ToolCall> calls;
    const Json* list = message.array("tool_calls");
    for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
        calls.push_back(
            read_tool_call((*list)[i], concat(message.full_name("tool_calls"), "[", i, "]")));
    }
    return calls;
}

std::string read_role(Fields& message) {
    const std::string role = required_string(message, "role");
    if (role == "developer") {
        return "system";
    }
    for (const char* known : {"system", "user", "assistant", "tool"}) {
        if (role == known) {
            return role;
        }
    }
    bad_field(message.full_name("role"),
              "expected system, developer, user, assistant or tool, found ", in_quotes(role));
}

ChatMessage read_message(const Json& value, const std::string& field) {
    Fields fields(required_object(value, field), field + ".");
    ChatMessage message{.role = read_role(fields)};
    const bool is_assistant = message.role == "assistant";
    if (is_assistant) {
        message.tool_calls = read_tool_calls(fields);
        message.reasoning = fields.string("reasoning_content").value_or("");
    }
    if (const Json* content = fields.find("content")) {
        message.content = content_text(*content, field + ".content");
    } else if (!is_assistant || message.tool_calls.empty()) {
        bad_field(field + ".content", "expected a string or an array of parts, found none");
    }
    if (message.role == "tool") {
        message.tool_call_id = required_string(fields, "tool_call_id");
        message.tool_name = fields.string("name").value_or("");
    }
    return message;
}

ChatTool read_tool(const Json& value, const std::string& field) {
    Fields tool(required_object(value, field), field + ".");
    const std::string type = tool.string("type").value_or("function");
    if (type != "function") {
        bad_field(field + ".type", "expected function, found ", in_quotes(type));
    }
    const Json* function = tool.object("function");
    if (function == nullptr) {
        bad_field(field + ".function", "expected an object, found none");
    }
    Fields inner(*function, field + ".function.");
    const Json* parameters = inner.object("parameters");
    ChatTool read{.name = required_string(inner, "name"),
                  .description = inner.string("description").value_or(""),
                  .parameters = parameters == nullptr ? R"({"type":"object","properties":{}})"
                                                      : to_text(*parameters)};
    if (read.name.empty()) {
        bad_field(field + ".function.name", "expected a name, found an empty one");
    }
    return read;
}

// {"type": "function", "function": {"name": ...}}
std::string chosen_tool(const Json& choice) {
    Fields fields(choice, "tool_choice.");
    const Json* function = fields.object("function");
    if (function == nullptr) {
        bad_field("tool_choice.function", "expected an object, found none");
    }
    Fields inner(*function, "tool_choice.function.");
    return required_string(inner, "name");
}

void keep_only(std::vector<ChatTool>& tools, const std::string& name) {
    const auto chosen = std::ranges::find(tools, name, &ChatTool::name);
    if (chosen == tools.end()) {
        bad_field("tool_choice", "expected a name of `tools` (", join(tools, ", ", &ChatTool::name),
                  "), found ", in_quotes(name));
    }
    tools = {*chosen};
}

void read_tool_choice(Fields& fields, ChatRequest& chat) {
    const Json* value = fields.find("tool_choice");
    if (value == nullptr) {
        return;
    }
    if (value->is_object()) {
        keep_only(chat.tools, chosen_tool(*value));
        chat.tool_choice = ToolChoice::required;
        return;
    }
    const std::string name = value->is_string() ? value->get<std::string>() : "";
    if (name == "none") {
        chat.tool_choice = ToolChoice::none;
    } else if (name == "required") {
        chat.tool_choice = ToolChoice::required;
    } else if (name != "auto") {
        bad_field("tool_choice", "expected auto, none, required or an object, found ",
                  value->is_string() ? in_quotes(name) : kind_of(*value));
    }
    if (chat.tool_choice == ToolChoice::required && chat.tools.empty()) {
        bad_field("tool_choice", "expected `tools` to choose from, found none");
    }
}

}  // namespace

std::vector<ChatMessage> read_messages(Fields& fields) {
    const Json* list = fields.array("messages");
    if (list == nullptr || list->empty()) {
        bad_field("messages", "expected at least one message, found none");
    }
    std::vector<ChatMessage> messages;
    for (std::size_t i = 0; i < list->size(); ++i) {
        messages.push_back(read_message((*list)[i], concat("messages[", i, "]")));
    }
    return messages;
}

void read_tools(Fields& fields, ChatRequest& chat) {
    const Json* list = fields.array("tools");
    for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
        if (i == kMaxTools) {
            bad_field("tools", "expected at most ", kMaxTools, ", found ", list->size());
        }
        ChatTool tool = read_tool((*list)[i], concat("tools[", i, "]"));
        if (std::ranges::find(chat.tools, tool.name, &ChatTool::name) != chat.tools.end()) {
            bad_field(concat("tools[", i, "].function.name"), "expected every name once, found ",
                      in_quotes(tool.name), " twice");
        }
        chat.tools.push_back(std::move(tool));
    }
    read_tool_choice(fields, chat);
    if (const auto parallel = fields.boolean("parallel_tool_calls")) {
        chat.parallel_tool_calls = *parallel;
    }
}

}  // namespace knap

#include "text/chat_request.h"

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/quoted.h"
#include "nlohmann/json.hpp"
#include "text/grammar/json_schema.h"

namespace knap {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxToolName = 128;
constexpr int kMaxArgumentDepth = 64;

// Calls `change` for every text that the template may show, with its JSON inside or not.
enum class TextKind { plain, json };
using ChangeText = std::function<void(std::string& text, TextKind kind)>;

void for_each_text(ChatRequest& request, const ChangeText& change) {
    for (ChatMessage& message : request.messages) {
        change(message.content, TextKind::plain);
        change(message.reasoning, TextKind::plain);
        change(message.tool_call_id, TextKind::plain);
        change(message.tool_name, TextKind::plain);
        for (ToolCall& call : message.tool_calls) {
            change(call.id, TextKind::plain);
            change(call.name, TextKind::plain);
            change(call.arguments, TextKind::json);
        }
    }
    for (ChatTool& tool : request.tools) {
        change(tool.description, TextKind::plain);
        change(tool.parameters, TextKind::json);
    }
    for (auto& [name, value] : request.arguments) {
        change(value, TextKind::json);
    }
}

// Whether the text is JSON. Throws when it is nested too deeply for functions that descend into it.
bool is_json(const std::string& text, const std::string& where) {
    const auto is_shallow = [&](int depth, Json::parse_event_t, Json&) {
        if (depth > kMaxArgumentDepth) {
            fail(where, ": expected at most ", kMaxArgumentDepth, " levels of JSON, found more");
        }
        return true;
    };
    return !Json::parse(text, is_shallow, /*allow_exceptions=*/false).is_discarded();
}

void check_message(const ChatMessage& message, const std::string& where) {
    constexpr std::array<std::string_view, 5> kRoles = {"system", "developer", "user", "assistant",
                                                        "tool"};
    if (std::find(kRoles.begin(), kRoles.end(), message.role) == kRoles.end()) {
        fail("`", where, ".role`: expected system, developer, user, assistant or tool, found ",
             in_quotes(message.role));
    }
    if (message.role != "assistant" &&
        (!message.reasoning.empty() || !message.tool_calls.empty())) {
        fail("`", where, "`: expected reasoning and tool calls in assistant messages, found role ",
             message.role);
    }
    for (std::size_t i = 0; i < message.tool_calls.size(); ++i) {
        const std::string place = concat("`", where, ".tool_calls[", i, "]");
        if (message.tool_calls[i].name.empty()) {
            fail(place, ".name`: expected a name, found none");
        }
        // A model may have written broken JSON. Templates that need the object refuse it.
        is_json(message.tool_calls[i].arguments, place + ".arguments`");
    }
}

void check_tool(ChatTool& tool, std::set<std::string>& names, SchemaBudget& budget) {
    const auto is_allowed = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               std::string_view("_-.:/").find(c) != std::string_view::npos;
    };
    if (tool.name.empty() || tool.name.size() > kMaxToolName ||
        !std::all_of(tool.name.begin(), tool.name.end(), is_allowed)) {
        fail("`.tools`: expected a name of 1..", kMaxToolName, " letters, digits and _-.:/, found ",
             in_quotes(tool.name.substr(0, kMaxToolName)));
    }
    if (!names.insert(tool.name).second) {
        fail("`.tools`: expected different names, found ", in_quotes(tool.name), " twice");
    }
    if (tool.parameters.empty()) {
        tool.parameters = R"({"type":"object","properties":{}})";
    }
    const std::string where = concat("`.tools[", tool.name, "].parameters`");
    tool.parameters = checked_schema(tool.parameters, where, SchemaUse::tool, budget);
}

void check_constraints(const ChatRequest& request) {
    const int n_constraints = static_cast<int>(!request.tools.empty()) +
                              static_cast<int>(!request.json_schema.empty()) +
                              static_cast<int>(!request.grammar.empty());
    if (n_constraints > 1) {
        fail("expected one of `.tools`, `.json_schema` and `.grammar`, found ", n_constraints);
    }
    if (request.tools.empty() && request.tool_choice == ToolChoice::required) {
        fail("`.tool_choice`: expected tools to choose from, found none");
    }
    constexpr std::array<std::string_view, 6> kOwn = {
        "messages", "tools", "bos_token", "eos_token", "add_generation_prompt", "enable_thinking"};
    for (const auto& [name, value] : request.arguments) {
        if (std::find(kOwn.begin(), kOwn.end(), name) != kOwn.end()) {
            fail("`.arguments`: expected other variables than those of a chat, found ", name);
        }
        const std::string where = concat("`.arguments[", name, "]`");
        if (!is_json(value, where)) {
            fail(where, ": expected JSON, found ", in_quotes(value.substr(0, 100)));
        }
    }
    if (request.continue_final &&
        (request.messages.empty() || request.messages.back().role != "assistant" ||
         !request.messages.back().tool_calls.empty())) {
        fail("`.continue_final`: expected a last message of the assistant, without tool calls");
    }
}

void check_sizes(ChatRequest& request) {
    std::size_t n_bytes = 0;
    for_each_text(request, [&](std::string& text, TextKind) {
        n_bytes += text.size();
        // Built-in formats take C strings.
        if (text.find('\0') != std::string::npos) {
            fail("messages: expected text without zero bytes, found one");
        }
    });
    if (n_bytes > kMaxChatBytes) {
        fail("messages: expected at most ", kMaxChatBytes, " bytes, found ", n_bytes);
    }
}

// Changes the strings of a JSON text, names of members too. A text that is not JSON is plain.
void change_strings(Json& value, const std::function<std::string(std::string_view)>& change) {
    if (value.is_string()) {
        value = change(value.get_ref<const std::string&>());
    } else if (value.is_array()) {
        for (Json& element : value) {
            change_strings(element, change);
        }
    } else if (value.is_object()) {
        Json changed = Json::object();
        for (auto& [name, member] : value.items()) {
            change_strings(member, change);
            changed[change(name)] = std::move(member);
        }
        value = std::move(changed);
    }
}

}  // namespace

ChatRequest checked_request(ChatRequest request) {
    if (request.tool_choice == ToolChoice::none) {
        request.tools.clear();
    }
    check_sizes(request);
    for (std::size_t i = 0; i < request.messages.size(); ++i) {
        check_message(request.messages[i], concat(".messages[", i, "]"));
    }
    std::set<std::string> names;
    SchemaBudget budget;
    for (ChatTool& tool : request.tools) {
        check_tool(tool, names, budget);
    }
    check_constraints(request);
    if (!request.json_schema.empty()) {
        request.json_schema =
            checked_schema(request.json_schema, "`.json_schema`", SchemaUse::answer, budget);
    }
    return request;
}

GuardedRequest guard_request(const ChatRequest& request,
                             const ControlTokens& controls,
                             std::string_view chat_template) {
    GuardedRequest guarded{request, {}};
    std::vector<std::string_view> texts{chat_template};
    bool has_control = false;
    for_each_text(guarded.request, [&](std::string& text, TextKind kind) {
        texts.push_back(text);
        // JSON may spell "<" as an escape.
        has_control = has_control || !controls.find(text).empty() ||
                      (kind == TextKind::json && text.find('\\') != std::string::npos);
    });
    if (!has_control) {
        return guarded;
    }
    const std::string mark = unused_mark(texts);
    const auto with_marks = [&](std::string_view text) { return controls.with_marks(text, mark); };
    bool is_changed = false;
    for_each_text(guarded.request, [&](std::string& text, TextKind kind) {
        std::string changed;
        Json tree = kind == TextKind::json ? Json::parse(text, nullptr, false)
                                           : Json(Json::value_t::discarded);
        if (tree.is_discarded()) {
            changed = with_marks(text);
        } else {
            change_strings(tree, with_marks);
            changed = tree.dump(-1, ' ', false, Json::error_handler_t::replace);
        }
        if (changed.find(mark) != std::string::npos) {
            text = std::move(changed);
            is_changed = true;
        }
    });
    guarded.mark = is_changed ? mark : "";
    return guarded;
}

}  // namespace knap

#include "serve/api/chat_body.h"

#include <algorithm>

#include "base/quoted.h"
#include "serve/api/constraint_fields.h"
#include "serve/api/content_text.h"
#include "serve/api/error.h"
#include "serve/api/messages.h"

namespace knap {
namespace {

constexpr std::size_t kMaxArgumentBytes = 16 * 1024;

// Named arguments of the template. Only scalars: a template should not receive another conversation
// than the one that was checked.
void read_template_arguments(Fields& fields, ChatRequest& chat) {
    const Json* value = fields.object("chat_template_kwargs");
    if (value == nullptr) {
        return;
    }
    if (to_text(*value).size() > kMaxArgumentBytes) {
        bad_field("chat_template_kwargs", "expected at most ", kMaxArgumentBytes,
                  " bytes, found more");
    }
    for (const auto& [name, argument] : value->items()) {
        const std::string field = concat("chat_template_kwargs.", printable(name, 64));
        if (name == "messages" || name == "tools" || name == "chat_template") {
            bad_field(field, "expected another name: this one is not an argument of a template");
        }
        if (argument.is_structured()) {
            bad_field(field, "expected a string, a number or a boolean, found ", kind_of(argument));
        }
        if (name != "enable_thinking") {
            chat.arguments.insert_or_assign(name, to_text(argument));
        } else if (argument.is_boolean()) {
            chat.enables_thinking = argument.get<bool>();
        } else {
            bad_field(field, "expected true or false, found ", to_text(argument));
        }
    }
}

void read_reasoning(Fields& fields, ChatRequest& chat) {
    if (const auto effort = fields.string("reasoning_effort")) {
        if (*effort == "none") {
            chat.enables_thinking = false;
        } else {
            chat.arguments.insert_or_assign("reasoning_effort", to_text(Json(*effort)));
        }
    }
    const std::string format = fields.string("reasoning_format").value_or("auto");
    if (format != "auto" && format != "none") {
        bad_field("reasoning_format", "expected auto or none, found ", in_quotes(format));
    }
    chat.extracts_reasoning = format == "auto";
}

// Whether the template opens a new turn of the assistant, or the last message is continued.
void read_turn(Fields& fields, ChatRequest& chat) {
    const auto opens = fields.boolean("add_generation_prompt");
    const auto continues = fields.boolean("continue_final_message");
    if (opens.value_or(false) && continues.value_or(false)) {
        bad_field("continue_final_message",
                  "expected false beside \"add_generation_prompt\": true");
    }
    const std::size_t n = chat.messages.size();
    const bool ends_with_answer = chat.messages.back().role == "assistant";
    if (ends_with_answer && n > 1 && chat.messages[n - 2].role == "assistant") {
        bad_field("messages", "expected at most one assistant message at the end, found two");
    }
    chat.continue_final = continues.value_or(ends_with_answer && !opens.value_or(false));
    if (chat.continue_final && !ends_with_answer) {
        bad_field("continue_final_message",
                  "expected an assistant message at the end to continue, found one of role ",
                  chat.messages.back().role);
    }
    chat.open_answer = opens.value_or(!chat.continue_final);
}

// Returns the number of alternatives to list, or -1.
int read_logprobs(Fields& fields) {
    const bool wants = fields.boolean("logprobs").value_or(false);
    const auto n = fields.integer("top_logprobs", {.min = 0, .max = kMaxLogprobs});
    if (n && !wants) {
        bad_field("top_logprobs", "expected \"logprobs\": true beside it, found none");
    }
    return wants ? static_cast<int>(n.value_or(0)) : -1;
}

}  // namespace

ChatRequest read_chat_request(Fields& fields) {
    ChatRequest chat;
    chat.messages = read_messages(fields);
    read_tools(fields, chat);
    read_template_arguments(fields, chat);
    read_reasoning(fields, chat);
    read_turn(fields, chat);
    RequestConstraint constraint = read_constraint(fields);
    const bool uses_tools = !chat.tools.empty() && chat.tool_choice != ToolChoice::none;
    if (uses_tools && !constraint.is_empty()) {
        bad_field("tools",
                  "expected no `response_format`, `json_schema` or `grammar` beside them: "
                  "tool calls have a grammar of their own");
    }
    chat.json_schema = std::move(constraint.json_schema);
    chat.grammar = std::move(constraint.grammar);
    return chat;
}

ChatBody read_chat_body(const Json& body, const GenerationDefaults& defaults, int n_vocab) {
    if (!body.is_object()) {
        throw RequestError({.message = concat("expected a JSON object, found ", kind_of(body))});
    }
    Fields fields(body);
    ChatBody read{.chat = read_chat_request(fields)};
    const int n_logprobs = read_logprobs(fields);
    read.generation = read_generation(fields, defaults, n_vocab);
    read.generation.options.n_logprobs = n_logprobs;
    return read;
}

}  // namespace knap

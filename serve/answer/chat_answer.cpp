#include "serve/answer/chat_answer.h"

#include <algorithm>
#include <utility>

#include "serve/answer/identifier.h"

namespace knap {
namespace {

// What `next` adds to `sent`; nothing where it is no longer the same text. (A parser that has seen
// more may read the beginning in another way; the final reading is always sent in full.)
std::string added(const std::string& sent, const std::string& next) {
    return next.starts_with(sent) ? next.substr(sent.size()) : std::string();
}

// A parser may take arguments that were cut off for a call.
bool has_complete_calls(const ChatMessage& message) {
    return !message.tool_calls.empty() &&
           std::ranges::all_of(message.tool_calls,
                               [](const ToolCall& call) { return Json::accept(call.arguments); });
}

bool says_nothing(const ChatMessage& message) {
    return message.content.empty() && message.reasoning.empty() && message.tool_calls.empty();
}

Json or_null(const std::string& text) {
    return text.empty() ? Json(nullptr) : Json(text);
}

}  // namespace

ChatAnswer::ChatAnswer(ChatAnswerParts parts)
    : parts_(std::move(parts)), choices_(static_cast<std::size_t>(parts_.n_choices)) {}

Json ChatAnswer::chunk(int index, Json delta, Json finish) {
    Choice& choice = choices_[static_cast<std::size_t>(index)];
    Json one{{"index", index}, {"delta", std::move(delta)}};
    if (parts_.has_logprobs) {
        one["logprobs"] = take_logprobs(choice);
    }
    one["finish_reason"] = std::move(finish);
    return parts_.head.with_choices(Json::array({std::move(one)}));
}

Json ChatAnswer::take_logprobs(Choice& choice) {
    if (choice.tokens.empty()) {
        return nullptr;
    }
    const std::vector<AnswerToken> tokens = std::exchange(choice.tokens, {});
    return {{"content", chat_logprobs(tokens, parts_.piece_of)}, {"refusal", nullptr}};
}

std::vector<Json> ChatAnswer::begin(int choice) {
    return {chunk(choice, {{"role", "assistant"}, {"content", nullptr}})};
}

std::vector<Json> ChatAnswer::add(int index, AnswerPart part) {
    Choice& choice = choices_[static_cast<std::size_t>(index)];
    choice.text += part.text;
    if (parts_.has_logprobs) {
        choice.tokens.insert(choice.tokens.end(), std::make_move_iterator(part.tokens.begin()),
                             std::make_move_iterator(part.tokens.end()));
    }
    if (!parts_.streams || part.text.empty()) {
        return {};
    }
    return advance(index, parse(choice, /*is_partial=*/true));
}

std::vector<Json> ChatAnswer::finish(int index, const JobEnd& end) {
    Choice& choice = choices_[static_cast<std::size_t>(index)];
    const bool is_complete = knap::finish_reason(end) == "stop";
    ChatMessage message = parse(choice, !is_complete);
    if (!is_complete && says_nothing(message)) {  // its text is not in the model's own format
        message = parse(choice, /*is_partial=*/false);
    }
    std::vector<Json> chunks = advance(index, std::move(message));
    const bool has_calls = is_complete && has_complete_calls(choice.message);
    choice.finish_reason = has_calls ? "tool_calls" : knap::finish_reason(end);
    if (parts_.streams) {  // a chunk takes the log-probabilities with it
        chunks.push_back(chunk(index, Json::object(), choice.finish_reason));
    }
    return chunks;
}

ChatMessage ChatAnswer::parse(const Choice& choice, bool is_partial) const {
    ChatMessage whole_text{.role = "assistant", .content = choice.text};
    if (parts_.prompt.parser == nullptr) {
        return whole_text;
    }
    try {
        return parts_.format.parse(parts_.prompt, choice.text, is_partial);
    } catch (const Error&) {
        // Text that is not in the model's own format of calls is still an answer.
        return is_partial ? choice.message : whole_text;
    }
}

std::vector<Json> ChatAnswer::advance(int index, ChatMessage next) {
    Choice& choice = choices_[static_cast<std::size_t>(index)];
    std::vector<Json> chunks;
    Json delta = Json::object();
    if (const std::string text = added(choice.message.reasoning, next.reasoning); !text.empty()) {
        delta["reasoning_content"] = text;
    }
    if (const std::string text = added(choice.message.content, next.content); !text.empty()) {
        delta["content"] = text;
    }
    if (!delta.empty() && parts_.streams) {
        chunks.push_back(chunk(index, std::move(delta)));
    }
    for (std::size_t i = 0; i < next.tool_calls.size(); ++i) {
        const ToolCall& call = next.tool_calls[i];
        const bool is_new = i >= choice.message.tool_calls.size();
        if (is_new) {
            choice.call_ids.push_back(call.id.empty() ? new_identifier("call_") : call.id);
        }
        if (is_new && parts_.streams) {
            // Clients wait for a first delta with empty arguments.
            chunks.push_back(
                chunk(index,
                      {{"tool_calls",
                        Json::array({{{"index", i},
                                      {"id", choice.call_ids[i]},
                                      {"type", "function"},
                                      {"function", {{"name", call.name}, {"arguments", ""}}}}})}}));
        }
        const std::string text =
            added(is_new ? "" : choice.message.tool_calls[i].arguments, call.arguments);
        if (!text.empty() && parts_.streams) {
            chunks.push_back(chunk(
                index, {{"tool_calls",
                         Json::array({{{"index", i}, {"function", {{"arguments", text}}}}})}}));
        }
    }
    choice.message = std::move(next);
    return chunks;
}

Json ChatAnswer::empty_chunk() const {
    return parts_.head.with_choices(Json::array());
}

Json ChatAnswer::tool_calls_json(const Choice& choice) const {
    Json calls = Json::array();
    for (std::size_t i = 0; i < choice.message.tool_calls.size(); ++i) {
        const ToolCall& call = choice.message.tool_calls[i];
        calls.push_back({{"id", choice.call_ids[i]},
                         {"type", "function"},
                         {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
    }
    return calls;
}

Json ChatAnswer::whole() const {
    Json list = Json::array();
    for (std::size_t i = 0; i < choices_.size(); ++i) {
        const Choice& choice = choices_[i];
        const bool has_calls = !choice.message.tool_calls.empty();
        Json message{
            {"role", "assistant"},
            {"content", has_calls ? or_null(choice.message.content) : Json(choice.message.content)},
            {"refusal", nullptr}};
        if (!choice.message.reasoning.empty()) {
            message["reasoning_content"] = choice.message.reasoning;
        }
        if (has_calls) {
            message["tool_calls"] = tool_calls_json(choice);
        }
        Json logprobs = nullptr;
        if (parts_.has_logprobs) {
            logprobs = {{"content", chat_logprobs(choice.tokens, parts_.piece_of)},
                        {"refusal", nullptr}};
        }
        list.push_back({{"index", i},
                        {"message", std::move(message)},
                        {"logprobs", std::move(logprobs)},
                        {"finish_reason", choice.finish_reason}});
    }
    return parts_.head.with_choices(std::move(list));
}

std::string ChatAnswer::reasoning(int choice) const {
    return choices_[static_cast<std::size_t>(choice)].message.reasoning;
}

}  // namespace knap

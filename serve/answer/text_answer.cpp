#include "serve/answer/text_answer.h"

#include <utility>

namespace knap {
namespace {

// llama.cpp's words for why an answer ended.
Json native_end(const JobEnd& end) {
    const StopReason stop = end.result.stop;
    std::string type = "limit";
    if (end.outcome == JobOutcome::done && stop == StopReason::eos) {
        type = "eos";
    } else if (end.outcome == JobOutcome::done && stop == StopReason::stop) {
        type = "word";
    }
    return {{"stop", true}, {"stop_type", type}, {"stopping_word", end.result.stop_string}};
}

std::vector<Token> ids_of(const std::vector<AnswerToken>& tokens) {
    std::vector<Token> ids;
    for (const AnswerToken& token : tokens) {
        ids.push_back(token.token);
    }
    return ids;
}

}  // namespace

TextAnswer::TextAnswer(TextAnswerParts parts)
    : parts_(std::move(parts)), choices_(parts_.echoes.size()) {}

Json TextAnswer::chunk(int index, std::string text, std::vector<AnswerToken> tokens, Json finish) {
    Choice& choice = choices_[static_cast<std::size_t>(index)];
    Json logprobs = nullptr;
    if (parts_.has_logprobs && !tokens.empty()) {
        logprobs = text_logprobs(tokens, parts_.piece_of, choice.n_characters);
    }
    return parts_.head.with_choices(Json::array({{{"index", index},
                                                  {"text", std::move(text)},
                                                  {"logprobs", std::move(logprobs)},
                                                  {"finish_reason", std::move(finish)}}}));
}

std::vector<Json> TextAnswer::begin(int choice) {
    const std::string& echo = parts_.echoes[static_cast<std::size_t>(choice)];
    return echo.empty() ? std::vector<Json>{} : std::vector<Json>{chunk(choice, echo, {}, nullptr)};
}

std::vector<Json> TextAnswer::add(int index, AnswerPart part) {
    Choice& choice = choices_[static_cast<std::size_t>(index)];
    choice.text += part.text;
    if (parts_.has_logprobs) {
        choice.tokens.insert(choice.tokens.end(), part.tokens.begin(), part.tokens.end());
    }
    if (part.text.empty() && (part.tokens.empty() || !parts_.has_logprobs)) {
        return {};
    }
    return {chunk(index, std::move(part.text), std::move(part.tokens), nullptr)};
}

std::vector<Json> TextAnswer::finish(int index, const JobEnd& end) {
    Choice& choice = choices_[static_cast<std::size_t>(index)];
    choice.finish_reason = knap::finish_reason(end);
    return {chunk(index, "", {}, choice.finish_reason)};
}

Json TextAnswer::empty_chunk() const {
    return parts_.head.with_choices(Json::array());
}

Json TextAnswer::whole() const {
    Json list = Json::array();
    for (std::size_t i = 0; i < choices_.size(); ++i) {
        const Choice& choice = choices_[i];
        std::size_t n_characters = 0;
        list.push_back(
            {{"index", i},
             {"text", parts_.echoes[i] + choice.text},
             {"logprobs", parts_.has_logprobs
                              ? text_logprobs(choice.tokens, parts_.piece_of, n_characters)
                              : Json(nullptr)},
             {"finish_reason", choice.finish_reason}});
    }
    return parts_.head.with_choices(std::move(list));
}

std::string TextAnswer::reasoning(int) const {
    return {};
}

NativeAnswer::NativeAnswer(AnswerHead head, int n_choices)
    : head_(std::move(head)), choices_(static_cast<std::size_t>(n_choices)) {}

std::vector<Json> NativeAnswer::begin(int) {
    return {};
}

std::vector<Json> NativeAnswer::add(int index, AnswerPart part) {
    Choice& choice = choices_[static_cast<std::size_t>(index)];
    const std::vector<Token> ids = ids_of(part.tokens);
    choice.text += part.text;
    choice.tokens.insert(choice.tokens.end(), ids.begin(), ids.end());
    return {{{"index", index}, {"content", part.text}, {"tokens", ids}, {"stop", false}}};
}

std::vector<Json> NativeAnswer::finish(int index, const JobEnd& end) {
    Choice& choice = choices_[static_cast<std::size_t>(index)];
    choice.end = native_end(end);
    Json last{{"index", index}, {"content", ""}, {"tokens", Json::array()}};
    last.update(choice.end);
    last["model"] = head_.model;
    return {std::move(last)};
}

Json NativeAnswer::empty_chunk() const {
    return Json::object();
}

Json NativeAnswer::whole() const {
    Json list = Json::array();
    for (std::size_t i = 0; i < choices_.size(); ++i) {
        const Choice& choice = choices_[i];
        Json one{{"index", i}, {"content", choice.text}, {"tokens", choice.tokens}};
        one.update(choice.end);
        one["model"] = head_.model;
        list.push_back(std::move(one));
    }
    return choices_.size() == 1 ? list.front() : list;
}

std::string NativeAnswer::reasoning(int) const {
    return {};
}

}  // namespace knap

#include "cli/generate/conversation.h"

#include <utility>

namespace knap {

Conversation::Conversation(const Engine& engine, std::string template_name, std::string system)
    : engine_(engine), template_name_(std::move(template_name)), system_(std::move(system)) {
    reset();
}

void Conversation::reset() {
    messages_.clear();
    computed_.clear();
    if (!system_.empty()) {
        messages_.push_back({"system", system_});
    }
}

std::vector<Token> Conversation::ask(std::string question, std::span<const Token> history) {
    messages_.push_back({"user", std::move(question)});
    asked_ = engine_.apply_chat_template(messages_, template_name_);
    if (computed_.empty() || !asked_.starts_with(computed_)) {
        // Some templates rewrite earlier turns. The session reuses the longest unchanged prefix.
        return engine_.tokenize(asked_, /*add_bos=*/true, /*parse_special=*/true);
    }
    // The history ends with the text of the answer; `rest` starts with what closes the turn
    // ("<|im_end|>").
    const auto rest = std::string_view(asked_).substr(computed_.size());
    const auto turn = engine_.tokenize(rest, /*add_bos=*/false, /*parse_special=*/true);
    std::vector<Token> prompt(history.begin(), history.end());
    prompt.insert(prompt.end(), turn.begin(), turn.end());
    return prompt;
}

void Conversation::answer(const Result& result) {
    if (result.stop == StopReason::cancelled && result.text.empty()) {
        messages_.pop_back();
        computed_.clear();
        return;
    }
    messages_.push_back({"assistant", result.text});
    // A stop string is not part of the text, but its tokens are part of the history.
    computed_ = result.stop == StopReason::stop ? "" : asked_ + result.text;
}

void Conversation::withdraw() {
    messages_.pop_back();
}

}  // namespace knap

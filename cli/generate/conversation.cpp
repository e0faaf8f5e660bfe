#include "cli/generate/conversation.h"

#include <utility>

namespace knap {

Conversation::Conversation(ChatFormat format, std::string system, Ask ask)
    : format_(std::move(format)), system_(std::move(system)), ask_(std::move(ask)) {
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
    asked_ = format_.render(ask_(messages_));
    if (computed_.empty() || !asked_.text.starts_with(computed_)) {
        // Some templates rewrite earlier turns. The session reuses the longest unchanged prefix.
        return asked_.tokens;
    }
    // The history ends with the text of the answer; the rest starts with what closes the turn
    // ("<|im_end|>").
    const auto turn = format_.tokens_from(asked_, computed_.size());
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
    messages_.push_back(format_.parse(asked_, result.text, /*is_partial=*/false));
    // A stop string is not part of the text, but its tokens are part of the history.
    computed_ = result.stop == StopReason::stop ? "" : asked_.text + result.text;
}

void Conversation::withdraw() {
    messages_.pop_back();
}

}  // namespace knap

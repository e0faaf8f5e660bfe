#include "runtime/answer_text.h"

#include <utility>

namespace knap {

AnswerText::AnswerText(std::vector<std::string> stop, std::function<void(std::string_view)> on_text)
    : stop_(std::move(stop)), on_text_(std::move(on_text)) {}

bool AnswerText::push(std::string_view bytes) {
    const StopStrings::Step step = stop_.push(characters_.push(bytes));
    show(step.text);
    has_stopped_ = step.stopped;
    return has_stopped_;
}

void AnswerText::finish() {
    if (has_stopped_) {
        return;
    }
    show(stop_.push(characters_.finish()).text);
    show(stop_.finish());
}

void AnswerText::show(std::string_view text) {
    if (text.empty()) {
        return;
    }
    text_ += text;
    if (on_text_) {
        on_text_(text);
    }
}

}  // namespace knap

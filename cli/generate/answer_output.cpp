#include "cli/generate/answer_output.h"

namespace knap {
namespace {

// Every piece of text is a reason to read the whole answer again. The time for that grows with its
// length, and may be a fiftieth of the time of the answer.
constexpr int kShareOfTime = 50;

constexpr std::string_view kSpaces = " \t\r\n";

std::string_view without_spaces_before(std::string_view text) {
    const auto begin = text.find_first_not_of(kSpaces);
    return begin == text.npos ? "" : text.substr(begin);
}

std::string_view without_spaces_around(std::string_view text) {
    const auto end = text.find_last_not_of(kSpaces);
    return end == text.npos ? "" : without_spaces_before(text.substr(0, end + 1));
}

}  // namespace

void AnswerOutput::write(std::string_view text) {
    if (format_ == nullptr) {
        answer_.write(text);
        return;
    }
    text_ += text;
    const auto begin = Clock::now();
    if (begin >= next_parse_) {
        parse(/*is_partial=*/true);
        const auto end = Clock::now();
        next_parse_ = end + kShareOfTime * (end - begin);
    }
}

void AnswerOutput::finish() {
    if (format_ != nullptr) {
        parse(/*is_partial=*/false);
        show_thoughts("");
    }
}

void AnswerOutput::parse(bool is_partial) {
    const ChatMessage message = format_->parse(*prompt_, text_, is_partial);
    const bool has_thoughts = !message.reasoning.empty();
    const std::string_view thoughts = without_spaces_around(message.reasoning);
    if (thoughts.size() > shown_thoughts_.size() && thoughts.starts_with(shown_thoughts_)) {
        show_thoughts(thoughts.substr(shown_thoughts_.size()));
        shown_thoughts_ = thoughts;
    }
    show_answer(has_thoughts ? without_spaces_before(message.content) : message.content,
                is_partial);
}

// No text ends them.
void AnswerOutput::show_thoughts(std::string_view text) {
    if (is_thinking_ == text.empty()) {
        thoughts_->write(text.empty() ? "\n[End thinking]\n\n" : "[Start thinking]\n");
        is_thinking_ = !text.empty();
    }
    thoughts_->write(text);
}

void AnswerOutput::show_answer(std::string_view text, bool is_partial) {
    const bool continues = text.starts_with(shown_answer_);
    if (std::string_view(shown_answer_).starts_with(text) || (is_partial && !continues)) {
        return;
    }
    show_thoughts("");
    if (!continues) {  // the end has shown that the beginning meant something else
        answer_.end_line();
        shown_answer_.clear();
    }
    answer_.write(text.substr(shown_answer_.size()));
    shown_answer_ = text;
}

}  // namespace knap

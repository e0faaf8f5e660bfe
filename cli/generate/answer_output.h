// The text of an answer as it streams: thoughts to standard error, what it says to standard output.
// Marks such as <think> or the channels of gpt-oss are shown to nobody.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "knap/chat.h"

#include "cli/generate/text_output.h"

namespace knap {

class AnswerOutput {
  public:
    // All of the text, as it is.
    explicit AnswerOutput(TextOutput& answer) : answer_(answer) {}
    // An answer to `prompt`, which `format` has rendered; both outlive it.
    AnswerOutput(TextOutput& answer,
                 TextOutput& thoughts,
                 const ChatFormat& format,
                 const ChatPrompt& prompt)
        : answer_(answer),
          thoughts_(&thoughts),
          format_(format.is_plain(prompt) ? nullptr : &format),
          prompt_(&prompt) {}

    void write(std::string_view text);
    // Of what follows; text that waits for its place is in the colour of what releases it.
    void set_color(TextColor color) { answer_.set_color(color); }
    // The answer has ended.
    void finish();

    bool is_closed() const { return answer_.is_closed(); }

  private:
    using Clock = std::chrono::steady_clock;

    void parse(bool is_partial);
    void show_thoughts(std::string_view text);
    void show_answer(std::string_view text, bool is_partial);

    TextOutput& answer_;
    TextOutput* thoughts_ = nullptr;
    const ChatFormat* format_ = nullptr;  // null: text passes as it is
    const ChatPrompt* prompt_ = nullptr;
    std::string text_;            // so far, with its marks
    std::string shown_thoughts_;  // what of it has been written
    std::string shown_answer_;
    bool is_thinking_ = false;
    Clock::time_point next_parse_{};
};

}  // namespace knap

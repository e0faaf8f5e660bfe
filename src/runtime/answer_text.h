// Assembles the text of an answer from its tokens: whole characters, without any part of a stop
// string.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "text/stop_strings.h"
#include "text/utf8_stream.h"

namespace knap {

class AnswerText {
  public:
    // `on_text` (may be empty) receives every piece once it is safe to show.
    AnswerText(std::vector<std::string> stop, std::function<void(std::string_view)> on_text);

    // Adds a token's bytes. Returns true when a stop string is complete.
    bool push(std::string_view bytes);
    void finish();  // shows the text held back
    const std::string& text() const { return text_; }
    const std::string& stop_string() const { return stop_.found(); }  // that ended it, if any

  private:
    void show(std::string_view text);

    Utf8Stream characters_;
    StopStrings stop_;
    std::function<void(std::string_view)> on_text_;
    std::string text_;
    bool has_stopped_ = false;
};

}  // namespace knap

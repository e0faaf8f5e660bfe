// Standard output for the words of a model: every piece is visible at once.
#pragma once

#include <string_view>

namespace knap {

class TextOutput {
  public:
    // Throws when the text cannot be written, except when the reader went away (`knap run | head
    // -1`).
    void write(std::string_view text);
    void end_line();  // writes a newline unless the text ended with one

    bool is_closed() const { return is_closed_; }  // the reader went away

  private:
    bool is_closed_ = false;
    char last_ = '\n';
};

}  // namespace knap

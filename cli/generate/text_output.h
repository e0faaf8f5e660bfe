// Standard output for the model's text, or standard error for its thoughts. Unbuffered, so that
// every piece appears immediately.
#pragma once

#include <string_view>

#include <unistd.h>

namespace knap {

enum class TextColor { usual, green, yellow, grey };

class TextOutput {
  public:
    explicit TextOutput(int descriptor = STDOUT_FILENO) : descriptor_(descriptor) {}

    // Throws when the text cannot be written, unless the reader has closed the pipe (`knap run |
    // head -1`).
    void write(std::string_view text);
    // Sets the colour of the following text. Only for terminals: colours are escape codes in the
    // text.
    void set_color(TextColor color) { color_ = color; }
    // Resets the colour, and ends the line unless the text ended with a newline.
    void end_line();

    bool is_closed() const { return is_closed_; }  // the reader has closed the pipe

  private:
    void write_bytes(std::string_view bytes);

    int descriptor_;
    bool is_closed_ = false;
    char last_ = '\n';
    TextColor color_ = TextColor::usual;
};

}  // namespace knap

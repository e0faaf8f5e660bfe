// Standard output for the words of a model: every piece is visible at once.
#pragma once

#include <string_view>

namespace knap {

enum class TextColor { usual, green, yellow };

class TextOutput {
  public:
    // Throws when the text cannot be written, except when the reader went away (`knap run | head
    // -1`).
    void write(std::string_view text);
    // Of what is written from now on. Only for a terminal: colours are escape codes in the text.
    void set_color(TextColor color) { color_ = color; }
    // Ends the colour, and the line unless the text ended with a newline.
    void end_line();

    bool is_closed() const { return is_closed_; }  // the reader went away

  private:
    void write_bytes(std::string_view bytes);

    bool is_closed_ = false;
    char last_ = '\n';
    TextColor color_ = TextColor::usual;
};

}  // namespace knap

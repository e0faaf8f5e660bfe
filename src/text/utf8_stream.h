// Turns the bytes of tokens into text as they arrive. A token may end inside a character, so the
// start of a character is held back until the rest arrives. The output is always valid UTF-8 and
// does not depend on how the input was split. A maximal ill-formed subsequence becomes one U+FFFD,
// as the Unicode standard recommends (section 3.9).
#pragma once

#include <string>
#include <string_view>

namespace knap {

class Utf8Stream {
  public:
    // Returns the characters that `bytes` completes; may be empty.
    std::string push(std::string_view bytes);
    // Ends the text and resets the stream. Returns one U+FFFD if the text ended inside a character,
    // otherwise nothing.
    std::string finish();

  private:
    std::string cut_;  // the start of a character, at most 3 bytes
};

}  // namespace knap

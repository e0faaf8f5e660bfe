// Turns the bytes of tokens into text as they come. A token may end inside a character, so a
// beginning of one is held back until the rest arrives. What comes out is always valid UTF-8, and
// the same however the input was split: a maximal ill-formed subsequence becomes one U+FFFD, as the
// Unicode standard recommends (section 3.9).
#pragma once

#include <string>
#include <string_view>

namespace knap {

class Utf8Stream {
  public:
    // The characters that `bytes` completes; may be empty.
    std::string push(std::string_view bytes);
    // Ends the text: one U+FFFD when it ended inside a character, else nothing. The stream is then
    // as new.
    std::string finish();

  private:
    std::string cut_;  // the beginning of a character, at most 3 bytes
};

}  // namespace knap

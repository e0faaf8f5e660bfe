// Control tokens spelled out in texts. A message may contain the text of one, such as "<|im_end|>",
// and a template puts messages and control tokens into one text. So a mark goes into each such
// place before the message meets the template, and comes out afterwards: a control token in the
// result is plain text if a mark was inside it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "text/tokenizer.h"

namespace knap {

class ControlTokens {
  public:
    explicit ControlTokens(const Tokenizer& tokenizer);

    struct Place {
        std::size_t begin;
        std::size_t end;
    };
    // Leftmost first, the longest where several start, without overlaps.
    std::vector<Place> find(std::string_view text) const;
    // The text with `mark` after the first character of every control token, overlapping ones too.
    std::string with_marks(std::string_view text, std::string_view mark) const;

  private:
    std::size_t longest_at(std::string_view text, std::size_t at) const;  // 0: none

    std::unordered_set<std::string> texts_;
    std::vector<std::size_t> lengths_;  // descending
    std::vector<bool> is_first_;        // by byte: whether a control token starts with it
};

// A character of a private-use plane that none of the texts contains, nor as an escape of JSON.
std::string unused_mark(const std::vector<std::string_view>& texts);

// Removes the marks, also those that JSON text writes as escapes, and returns where they were.
std::vector<std::size_t> remove_marks(std::string& text, std::string_view mark);

// The tokens of `text` from `offset` on. Control tokens are parsed, except those with one of the
// places `plain` inside. `plain` ascends.
std::vector<Token> encode_with_plain(const Tokenizer& tokenizer,
                                     const ControlTokens& controls,
                                     std::string_view text,
                                     const std::vector<std::size_t>& plain,
                                     std::size_t offset = 0);

}  // namespace knap

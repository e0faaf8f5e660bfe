// Waiting for one of several strings in a text of tokens: from where on a grammar applies.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "knap/types.h"

#include "text/tokenizer.h"

namespace knap {

// Immutable, shared by all places of a text.
class AwaitedStrings {
  public:
    AwaitedStrings() = default;
    AwaitedStrings(std::vector<std::string> strings, const Tokenizer& tokenizer);

    bool is_empty() const { return strings_.empty(); }
    // Whether the token's bytes can complete one of the strings. False for nearly all tokens.
    bool may_complete(Token token) const;
    // Bytes of a text that may be the start of one of the strings.
    std::size_t n_kept() const { return is_empty() ? 0 : longest_ - 1; }

    struct Place {
        std::size_t begin;
        std::size_t end;
    };
    // The first string that the text contains, in the order given.
    std::optional<Place> find(std::string_view text) const;

  private:
    std::vector<std::string> strings_;
    std::size_t longest_ = 0;
    std::vector<bool> may_complete_;  // [n_vocab]; empty if there are no strings
};

// The end of a text, with its tokens.
struct RecentText {
    struct Part {
        Token token;
        std::ptrdiff_t begin;  // in `text`; negative: its beginning was dropped
    };

    void append(Token token, std::string_view piece);
    void keep_last(std::size_t n_bytes);

    std::string text;
    std::vector<Part> parts;
};

// The text that a regular expression stands for if it has no operators ("<a\.b>"); nullopt: it has
// some.
std::optional<std::string> plain_text_of(std::string_view pattern);

}  // namespace knap

// Where the last tokens of a text have occurred before, longest match first, in a text that grows
// at its end and may be cut there again (docs/methods.md, "Copies that learn").
//
// Every place of the text is kept in the order of the tokens before it, read backwards, so the
// places whose last tokens agree with those of any other text are neighbours. The order is a list
// of short sorted blocks: taking in a token is a binary search and a short move, a microsecond or
// so, and the memory is about ten bytes a token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "knap/types.h"

namespace knap {

class SuffixIndex {
  public:
    // Matches are counted up to this length. Beyond it, length hardly affects how likely the match
    // is to continue.
    static constexpr int kLongestMatch = 32;

    void append(std::span<const Token> tokens);
    // Ends a text: no match reaches across, and nothing follows its last token.
    void end_text();
    // Drops the tokens from index `n_tokens` on.
    void truncate(std::size_t n_tokens);
    // Drop the oldest or the newest text with its end. It must have ended.
    void drop_first_text();
    void drop_last_text();
    void clear();

    struct Match {
        std::size_t next;  // index of the token that followed
        int length;        // tokens before it that equal the end of the tail, up to kLongestMatch

        bool operator==(const Match&) const = default;
    };
    // Fills `matches` with up to `n_most` places after tokens that equal the last ones of `tail`,
    // `min_length` of them or more: the longest matches first, the latest first among equals. Where
    // more than `n_most` have the same length, any of them. A tail that is the end of this text
    // does not match itself.
    void find(std::span<const Token> tail,
              int min_length,
              std::size_t n_most,
              std::vector<Match>& matches) const;

    // The tokens, with kEndMark after every text that has ended.
    static constexpr Token kEndMark = -1;
    std::span<const Token> text() const { return text_; }
    std::size_t n_bytes() const;

  private:
    using Place = std::uint32_t;  // the index of a token, in the order of what comes before it
    using Block = std::vector<Place>;
    struct Spot {  // in the order: between two places, or at one
        std::size_t block;
        std::size_t index;
    };

    bool is_before(Place place, std::span<const Token> tail, Place of_equals) const;
    Spot spot_of(std::span<const Token> tail, Place of_equals) const;
    std::span<const Token> before(Place place) const { return std::span(text_).first(place); }
    void insert(Place place);
    void erase(Place place);

    std::vector<Token> text_;
    std::vector<Block> blocks_;  // none is empty
};

}  // namespace knap

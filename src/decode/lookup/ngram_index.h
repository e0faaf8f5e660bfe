// Finds the latest occurrence of short runs of tokens (n-grams) in a text that grows at its end.
// Appending a token and looking up the end of the text take amortised constant time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "knap/types.h"

namespace knap {

// The latest occurrence of every run of `length` tokens that is followed by another token.
//
// An open-addressing table over the text itself. A slot holds the index right after a run, so runs
// are not stored and are compared token by token (equal hashes prove nothing). Runs are never
// removed one by one. The text given must be the one given before, or a continuation of it.
class NgramTable {
  public:
    explicit NgramTable(int length);

    // `end` >= length is the index after the run.
    void insert(std::span<const Token> text, std::size_t end);
    // Returns the latest inserted index after a run equal to the one before `end`; 0: there is
    // none.
    std::size_t find(std::span<const Token> text, std::size_t end) const;
    void clear();

    std::size_t length() const { return length_; }

  private:
    // The slot of the run before `end`: the one that holds it, or the empty one where it belongs.
    std::size_t slot_of(std::span<const Token> text, std::size_t end) const;
    void grow(std::span<const Token> text);

    std::size_t length_;
    std::vector<std::uint32_t> slots_;  // indices, 0: empty; a power of two, at most half in use
    std::size_t n_used_ = 0;
};

class NgramIndex {
  public:
    // Runs of min_length..max_length tokens are indexed; 1 <= min_length <= max_length.
    NgramIndex(int min_length, int max_length);

    void append(std::span<const Token> tokens);
    void clear();  // keeps the memory

    // Matches are counted up to this length. Beyond it, length hardly affects how likely the match
    // is to continue.
    static constexpr int kLongestMatch = 32;

    struct Match {
        int length;  // tokens before `next` that equal the end of the text, up to kLongestMatch
        std::size_t next;  // index after the earlier occurrence, where its continuation begins
    };
    // The latest earlier occurrence of the longest indexed run at the end of the text that has one,
    // extended backwards while tokens are equal.
    std::optional<Match> find_end() const;

    std::span<const Token> text() const { return text_; }

  private:
    std::vector<Token> text_;
    std::vector<NgramTable> tables_;  // longest runs first
};

}  // namespace knap

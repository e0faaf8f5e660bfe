// Where short runs of tokens (n-grams) occurred last, in a text that grows at its end. Appending a
// token and asking where the end of the text was seen before cost constant time, amortised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "knap/types.h"

namespace knap {

// The latest occurrence of every run of `length` tokens that another token follows.
//
// An open-addressing table over the text itself: a slot names a run by the place right after it, so
// that runs are compared by their tokens (equal hashes prove nothing) and none is stored. Nothing
// is ever removed but all at once; the text given must be the one that was given before, or longer.
class NgramTable {
  public:
    explicit NgramTable(int length);

    // `end` >= length is the place after the run.
    void insert(std::span<const Token> text, std::size_t end);
    // The latest inserted place after a run equal to the one before `end`; 0: there is none.
    std::size_t find(std::span<const Token> text, std::size_t end) const;
    void clear();

    std::size_t length() const { return length_; }

  private:
    // The slot of the run before `end`: the one that holds its place, or the empty one for it.
    std::size_t slot_of(std::span<const Token> text, std::size_t end) const;
    void grow(std::span<const Token> text);

    std::size_t length_;
    std::vector<std::uint32_t> slots_;  // places, 0: empty; a power of two, at most half in use
    std::size_t n_used_ = 0;
};

class NgramIndex {
  public:
    // Runs of min_length..max_length tokens are indexed; 1 <= min_length <= max_length.
    NgramIndex(int min_length, int max_length);

    void append(std::span<const Token> tokens);
    void clear();  // keeps the memory

    // Tokens of a match that are counted: how sure a longer one is of what follows hardly differs.
    static constexpr int kLongestMatch = 32;

    struct Match {
        int length;        // tokens before `next` that the text ends with, up to kLongestMatch
        std::size_t next;  // the place after the earlier occurrence: what followed begins here
    };
    // The most recent earlier occurrence of the longest indexed run at the end of the text that has
    // one, with as much of what stands before it as is the same.
    std::optional<Match> find_end() const;

    std::span<const Token> text() const { return text_; }

  private:
    std::vector<Token> text_;
    std::vector<NgramTable> tables_;  // longest runs first
};

}  // namespace knap

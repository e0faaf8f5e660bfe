// Logit bias, and penalties on tokens that have occurred: repetition, frequency and presence
// penalties over a window of the latest tokens, with llama.cpp's formulas.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "knap/types.h"

namespace knap {

// Adds each bias to its token's logit. Several biases for one token add up.
void apply_bias(std::span<const std::pair<Token, float>> bias, std::span<float> logits);

struct Penalties {
    float repeat = 1.0f;     // divides positive logits, multiplies the others
    float frequency = 0.0f;  // subtracted once per occurrence
    float presence = 0.0f;   // subtracted once

    bool are_active() const { return repeat != 1.0f || frequency != 0.0f || presence != 0.0f; }
};

// Counts of the last `size` tokens of a history. Keeps the whole history so that it can be rolled
// back: a draft pushes its tokens, applies penalties, and pops the tokens again.
//
// Invariant: entries_ has each token of the window once, with a count of at least 1, and
// slots_[token] is its index there. So push, pop and each entry of apply take constant time,
// whatever the size of the vocabulary.
class PenaltyWindow {
  public:
    PenaltyWindow(std::size_t size, int n_vocab);

    void push(Token token);  // must be in the vocabulary
    // Undoes the last pushes; there must have been that many.
    void pop(std::size_t n_tokens = 1);

    // Changes the logits of the window's tokens. `logits` is [n_vocab].
    void apply(const Penalties& penalties, std::span<float> logits) const;

  private:
    struct Entry {
        Token token;
        std::int32_t count;
    };

    void add(Token token);
    void remove(Token token);

    std::size_t size_;
    std::vector<Token> history_;
    std::vector<Entry> entries_;
    std::vector<std::int32_t> slots_;  // [n_vocab]; -1: not in the window
};

}  // namespace knap

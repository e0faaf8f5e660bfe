// What makes a token less likely for having been said: repetition, frequency and presence penalties
// over a window of the latest tokens, with llama.cpp's formulas.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "knap/types.h"

namespace knap {

// Adds each bias to its token's logit; several for one token add up.
void apply_bias(std::span<const std::pair<Token, float>> bias, std::span<float> logits);

struct Penalties {
    float repeat = 1.0f;     // divides positive logits, multiplies the others
    float frequency = 0.0f;  // subtracted once per occurrence
    float presence = 0.0f;   // subtracted once

    bool are_active() const { return repeat != 1.0f || frequency != 0.0f || presence != 0.0f; }
};

// The last `size` tokens of a history, counted. Keeps the whole history, so that it can be rolled
// back: a draft pushes its tokens, asks for penalties, and pops them again.
//
// Always: entries_ holds each token of the window once, with a count of at least 1, and
// slots_[token] is its place there. So push, pop and an entry of apply cost constant time, whatever
// the vocabulary.
class PenaltyWindow {
  public:
    PenaltyWindow(std::size_t size, int n_vocab);

    void push(Token token);  // must be in the vocabulary
    // Takes back the last pushes, at most as many as there were.
    void pop(std::size_t n_tokens = 1);
    void clear();
    std::size_t history_size() const { return history_.size(); }

    // logits [n_vocab]: changes those of the window's tokens.
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

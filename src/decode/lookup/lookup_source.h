// A text's own past as a source of drafts: when its last few tokens have occurred before, what
// followed them then may follow again (methods 3.20). Asking costs no pass.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "knap/types.h"

#include "decode/lookup/ngram_index.h"

namespace knap {

// How many tokens at the end of the text must have occurred before.
struct NgramRange {
    int min = 2;
    int max = 3;  // tried first
};

class LookupSource {
  public:
    explicit LookupSource(NgramRange lengths = {}) : index_(lengths.min, lengths.max) {}

    // A request begins. A conversation that goes on keeps its index.
    void begin(std::span<const Token> prompt);

    struct Found {
        std::span<const Token> tokens{};  // valid until the next call; empty: nothing was found
        int match_length = 0;  // tokens that had occurred before, up to NgramIndex::kLongestMatch
    };
    // What may follow `history`, which begins with the prompt and only grows within a request:
    // `n_tokens` tokens, or none.
    Found find(std::span<const Token> history, int n_tokens);

  private:
    void copy_from(std::size_t next, std::size_t n_tokens);

    NgramIndex index_;
    std::vector<Token> tokens_;
};

}  // namespace knap

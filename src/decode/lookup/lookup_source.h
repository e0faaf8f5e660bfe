// Drafts copied from the text itself, and from other texts that it may resemble: if its last few
// tokens have occurred before, the tokens that followed them then may follow again
// (docs/methods.md, "Lookup"). A lookup costs no pass.
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

    // Begins a request. The index is kept if the prompt continues the indexed text and the
    // references are the same. A prediction is one more reference.
    void begin(std::span<const Token> prompt,
               std::span<const std::vector<Token>> references = {},
               std::span<const Token> prediction = {});

    struct Found {
        std::span<const Token> tokens{};  // valid until the next call; empty: no match
        int match_length = 0;             // matching tokens, up to NgramIndex::kLongestMatch
    };
    // Returns `n_tokens` tokens that may follow `history`, fewer where a reference ends, or none.
    // `history` begins with the prompt and only grows within a request.
    Found find(std::span<const Token> history, int n_tokens);

  private:
    void copy_from(std::size_t next, std::size_t n_tokens);

    NgramIndex index_;  // the references, each with an end mark, then the text of the request
    std::vector<Token> head_;  // the part before the request's text
    std::vector<Token> tokens_;
};

}  // namespace knap

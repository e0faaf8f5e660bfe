// Selects and sorts tokens by logit without touching more of the vocabulary than needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "knap/types.h"

namespace knap {

// A logit and its token in one number. Ascending keys are descending logits, then ascending tokens,
// so a comparison is one integer comparison. -0 counts as 0.
using RankKey = std::uint64_t;
RankKey rank_key(float logit, Token token);
float logit_of(RankKey key);
Token token_of(RankKey key);

// A list of ranked tokens that reuses its memory between rows. No logit may be NaN. Tokens at
// -infinity are left out.
class Ranking {
  public:
    void take_all(std::span<const float> logits);
    // The tokens whose logit is at least the n-th largest; ties with the n-th stay. n >= 1.
    void take_largest(std::span<const float> logits, std::size_t n);

    void sort();
    // The tokens, ordered by rank after sort() and unordered before. Entries may be removed if the
    // others keep their order.
    std::vector<RankKey>& keys() { return keys_; }

  private:
    float keep_largest(std::size_t n);

    std::vector<RankKey> keys_;
    std::vector<RankKey> scratch_;
    bool is_in_token_order_ = false;
};

}  // namespace knap

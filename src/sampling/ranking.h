// Selects and sorts tokens by logit without touching more of the vocabulary than needed.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "knap/types.h"

#include "base/host_device.h"

namespace knap {

// A logit and its token in one number. Ascending keys are descending logits, then ascending tokens,
// so a comparison is one integer comparison. -0 counts as 0.
using RankKey = std::uint64_t;

KNAP_HOST_DEVICE constexpr RankKey rank_key(float logit, Token token) {
    const auto bits = std::bit_cast<std::uint32_t>(logit + 0.0f);  // -0 becomes 0
    // Flipping the sign bit puts positive floats above negative ones. Negative floats need all bits
    // flipped.
    const std::uint32_t ascending = (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
    return RankKey{~ascending} << 32 | static_cast<std::uint32_t>(token);
}

KNAP_HOST_DEVICE constexpr float logit_of(RankKey key) {
    const auto ascending = ~static_cast<std::uint32_t>(key >> 32);
    return std::bit_cast<float>((ascending >> 31) != 0 ? ascending & 0x7fffffffu : ~ascending);
}

KNAP_HOST_DEVICE constexpr Token token_of(RankKey key) {
    return static_cast<Token>(static_cast<std::uint32_t>(key));
}

// A list of ranked tokens that reuses its memory between rows. No logit may be NaN. Tokens at
// -infinity are left out.
class Ranking {
  public:
    void take_all(std::span<const float> logits);
    // The tokens whose logit is at least the n-th largest; ties with the n-th stay. n >= 1.
    void take_largest(std::span<const float> logits, std::size_t n);

    // The same from tokens that are among them all, in any order.
    void take_largest(std::span<const RankKey> tokens, std::size_t n);

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

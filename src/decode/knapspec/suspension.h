// How long a draft source that lost time is not tried.
#pragma once

#include <algorithm>
#include <cstddef>

namespace knap {

// Tokens, doubling with every suspension before, so that what never pays is hardly ever tried.
inline std::size_t suspension_tokens(int n_before) {
    constexpr int kMaxDoublings = 5;
    constexpr std::size_t kFirst = 64;
    return kFirst << std::min(n_before, kMaxDoublings);
}

}  // namespace knap

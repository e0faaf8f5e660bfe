// How long a draft source that lost time is suspended (docs/methods.md, "Never slower").
#pragma once

#include <algorithm>
#include <cstddef>

namespace knap {

// In tokens. Doubles with each earlier suspension, so that a source that never pays off is rarely
// tried.
inline std::size_t suspension_tokens(int n_before) {
    constexpr int kMaxDoublings = 5;
    constexpr std::size_t kFirst = 64;
    return kFirst << std::min(n_before, kMaxDoublings);
}

}  // namespace knap

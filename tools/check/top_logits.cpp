#include "tools/check/top_logits.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace knap {
namespace {

// Tokens further down are rarely drawn.
constexpr std::size_t kTokens = 64;

}  // namespace

TopLogits::TopLogits(std::span<const float> reference)
    : reference_(reference), tokens_(reference.size()) {
    KNAP_ASSERT(!reference.empty(), "a row has a logit for each token");
    std::iota(tokens_.begin(), tokens_.end(), std::size_t{0});
    const auto n = std::min(kTokens, tokens_.size());
    std::partial_sort(tokens_.begin(), tokens_.begin() + static_cast<std::ptrdiff_t>(n),
                      tokens_.end(),
                      [&](std::size_t a, std::size_t b) { return reference[a] > reference[b]; });
    tokens_.resize(n);
    tokens_.shrink_to_fit();
}

double TopLogits::gap_change(std::span<const float> row) const {
    const auto change = [&](std::size_t token) {
        return double{row[token]} - double{reference_[token]};
    };
    const auto best = static_cast<std::size_t>(std::ranges::max_element(row) - row.begin());
    double lowest = change(best);
    double highest = lowest;
    for (const std::size_t token : tokens_) {
        if (std::isnan(change(token))) {
            return change(token);
        }
        lowest = std::min(lowest, change(token));
        highest = std::max(highest, change(token));
    }
    return highest - lowest;
}

}  // namespace knap

#include "sampling/row_maximum.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/error.h"

namespace knap {

namespace {

constexpr std::size_t kMaximumLanes = 32;
constexpr std::size_t kMaximumBlock = 32 * kMaximumLanes;
constexpr float kLargest = std::numeric_limits<float>::max();

// Independent lanes, because a compiler may not reorder one running maximum of floats into vectors.
// Few lanes would be unrolled into scalar code, so there are many.
LogitSummary summarize_lanes(const float* values, std::size_t n_values) {
    std::array<float, kMaximumLanes> maximum;
    std::array<std::uint32_t, kMaximumLanes> n_unsound{};
    maximum.fill(-std::numeric_limits<float>::infinity());
    for (std::size_t i = 0; i < n_values; i += kMaximumLanes) {
        for (std::size_t lane = 0; lane < kMaximumLanes; ++lane) {
            const float value = values[i + lane];
            maximum[lane] = value > maximum[lane] ? value : maximum[lane];
            n_unsound[lane] += value <= kLargest ? 0 : 1;
        }
    }
    const bool is_sound =
        std::all_of(n_unsound.begin(), n_unsound.end(), [](auto n) { return n == 0; });
    return {*std::max_element(maximum.begin(), maximum.end()), is_sound};
}

[[noreturn]] void fail_unsound(std::span<const float> logits) {
    const auto at =
        std::find_if(logits.begin(), logits.end(), [](float x) { return !(x <= kLargest); });
    fail("the model computed ", std::isnan(*at) ? "NaN" : "+infinity", " as the logit of token ",
         at - logits.begin(), ": its weights may be damaged, or a `.logit_bias` is too large");
}

}  // namespace

LogitSummary summarize(std::span<const float> logits) {
    const std::size_t n_whole = logits.size() / kMaximumLanes * kMaximumLanes;
    LogitSummary summary = summarize_lanes(logits.data(), n_whole);
    for (const float value : logits.subspan(n_whole)) {
        summary.maximum = std::max(summary.maximum, value);
        summary.is_sound = summary.is_sound && value <= kLargest;
    }
    return summary;
}

RowMaximum find_maximum(std::span<const float> logits) {
    float maximum = -std::numeric_limits<float>::infinity();
    std::size_t best_block = 0;
    for (std::size_t begin = 0; begin < logits.size(); begin += kMaximumBlock) {
        const LogitSummary block =
            summarize(logits.subspan(begin, std::min(kMaximumBlock, logits.size() - begin)));
        if (!block.is_sound) {
            fail_unsound(logits);
        }
        if (block.maximum > maximum) {
            maximum = block.maximum;
            best_block = begin;
        }
    }
    if (!std::isfinite(maximum)) {
        fail("no token can be chosen: all are forbidden (check `.logit_bias` and `.grammar`)");
    }
    const auto candidates = logits.subspan(best_block);
    const auto at = std::find(candidates.begin(), candidates.end(), maximum) - candidates.begin();
    return {static_cast<Token>(best_block) + static_cast<Token>(at), maximum};
}

}  // namespace knap

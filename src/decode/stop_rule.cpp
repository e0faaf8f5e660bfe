#include "decode/stop_rule.h"

#include <algorithm>
#include <cstddef>

namespace knap {

std::size_t MarginalRule::bin_of(float confidence) {
    // The product is exact in double, so every confidence falls into the bin that covers it.
    const int bin = static_cast<int>(static_cast<double>(confidence) * kBins);
    return static_cast<std::size_t>(std::clamp(bin, 0, kBins - 1));
}

bool StopState::starts() const {
    return rule_.n_max > 0 && pays();
}

bool StopState::goes_on(float confidence, bool is_end_of_text) {
    ++n_drafted_;
    if (rule_.marginal) {
        acceptance_ *= rule_.marginal->acceptance[MarginalRule::bin_of(confidence)];
    }
    const bool is_unsure = rule_.exit_confidence > 0 && confidence < rule_.exit_confidence;
    return n_drafted_ < rule_.n_max && !is_end_of_text && !is_unsure && pays();
}

bool StopState::pays() const {
    if (!rule_.marginal) {
        return true;
    }
    const MarginalRule& rule = *rule_.marginal;
    const double expected_tokens = acceptance_ * rule.mean_acceptance;
    const double tokens_forgone = rule.tokens_per_ms * (rule.draft_ms + rule.verify_ms);
    return expected_tokens > tokens_forgone;
}

}  // namespace knap

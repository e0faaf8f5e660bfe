#include "decode/del/exit_statistics.h"

#include <algorithm>

#include "base/error.h"

namespace knap {

ExitStatistics::ExitStatistics(int n_layers, double decay, int max_length)
    : n_layers_(n_layers),
      decay_(decay),
      max_length_(max_length),
      counts_(static_cast<std::size_t>(n_layers - 1)) {}

void ExitStatistics::clear() {
    std::ranges::fill(counts_, Counts{});
}

void ExitStatistics::add(std::span<const ShadowToken> shadows, std::span<const Token> target) {
    KNAP_ASSERT(shadows.size() == counts_.size() * target.size(), "one token per layer and row");
    for (std::size_t layer = 0; layer < counts_.size(); ++layer) {
        Counts& tally = counts_[layer];
        tally.matched *= decay_;
        tally.missed *= decay_;
        tally.confidence_matched *= decay_;
        tally.confidence_missed *= decay_;
        for (std::size_t row = 0; row < target.size(); ++row) {
            const ShadowToken& shadow = shadows[layer * target.size() + row];
            const bool is_match = shadow.token == target[row];
            (is_match ? tally.matched : tally.missed) += 1;
            (is_match ? tally.confidence_matched : tally.confidence_missed) +=
                static_cast<double>(shadow.confidence);
        }
    }
}

double ExitStatistics::acceptance(int n_layers) const {
    const Counts& tally = counts(n_layers);
    const double n_seen = tally.matched + tally.missed;
    return n_seen > 0 ? tally.matched / n_seen : 0;
}

ExitChoice ExitStatistics::best() const {
    ExitChoice best;
    for (int layer = 1; layer < n_layers_; ++layer) {
        const double acceptance = this->acceptance(layer);
        double n_expected = 0;  // tokens of a round: sum over k of acceptance^k
        double power = 1;
        for (int length = 0; length <= max_length_; ++length) {
            n_expected += power;
            power *= acceptance;
            // TPL times L. A draft of no tokens is plain decoding, whose TPL is 1 / L.
            const double speed = n_expected * n_layers_ / (n_layers_ + length * layer);
            if (speed > best.speed) {
                best = {.n_layers = layer, .draft_length = length, .speed = speed};
            }
        }
    }
    return best;
}

float ExitStatistics::threshold(int n_layers) const {
    const Counts& tally = counts(n_layers);
    if (tally.matched <= 0 || tally.missed <= 0) {
        return 0;
    }
    const double matched = tally.confidence_matched / tally.matched;
    const double missed = tally.confidence_missed / tally.missed;
    return static_cast<float>((matched + missed) / 2);
}

}  // namespace knap

// When to stop drafting, decided after each drafted token. The token that triggers the stop is kept
// and verified: dropping it because of its own probability would change the distribution of the
// text (docs/methods.md, "Conditions for exact sampling").
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/host_device.h"

namespace knap {

// The token whose probability is the confidence of a draft.
enum class ConfidenceOf : std::uint8_t {
    drafted,        // the first drafted token, before the transform
    most_probable,  // the most probable token, before the transform
    drawn,          // the first drafted token, in what it was drawn from; when greedy, as `drafted`
};

// Drafts another token only while it pays (docs/methods.md, "Marginal stop rule"): while
//     (acceptance of all drafts so far) * mean_acceptance > tokens_per_ms * (draft_ms + verify_ms).
struct MarginalRule {
    static constexpr int kBins = 10;
    // The bin that holds a confidence.
    KNAP_HOST_DEVICE static std::size_t bin_of(float confidence) {
        // The product is exact in double, so every confidence falls into the bin that covers it.
        const int bin = static_cast<int>(static_cast<double>(confidence) * kBins);
        return static_cast<std::size_t>(std::clamp(bin, 0, kBins - 1));
    }

    // Measured acceptance of drafts by their confidence: bin i holds [i / kBins, (i + 1) / kBins).
    std::array<double, kBins> acceptance{};
    double mean_acceptance = 0;  // of the next draft, whose confidence is not known yet
    double tokens_per_ms = 0;    // expected throughput of the round
    double draft_ms = 0;         // of one more draft step
    double verify_ms = 0;        // of one more row in the verification
};

struct StopRule {
    int n_max = 0;              // drafted tokens, at most
    float exit_confidence = 0;  // stop after a token less probable than this; 0: never
    ConfidenceOf confidence_of = ConfidenceOf::drafted;
    std::optional<MarginalRule> marginal{};

    // Whether the rule needs confidences, which cost a pass over the vocabulary.
    bool needs_confidence() const { return exit_confidence > 0 || marginal.has_value(); }
};

// Applies a rule to one draft. A copy can go on with the draft on a device.
class StopState {
  public:
    explicit StopState(const StopRule& rule) : rule_(rule) {}

    const StopRule& rule() const { return rule_; }

    // Whether to draft at all; for use before the first token.
    bool starts() const { return rule_.n_max > 0 && pays(); }
    // Records a drafted token and returns whether to draft another. `confidence` is ignored unless
    // the rule needs it.
    KNAP_HOST_DEVICE bool goes_on(float confidence, bool is_end_of_text) {
        ++n_drafted_;
        if (rule_.marginal) {
            acceptance_ *= rule_.marginal->acceptance[MarginalRule::bin_of(confidence)];
        }
        const bool is_unsure = rule_.exit_confidence > 0 && confidence < rule_.exit_confidence;
        return n_drafted_ < rule_.n_max && !is_end_of_text && !is_unsure && pays();
    }

  private:
    KNAP_HOST_DEVICE bool pays() const {
        if (!rule_.marginal) {
            return true;
        }
        const MarginalRule& rule = *rule_.marginal;
        const double expected_tokens = acceptance_ * rule.mean_acceptance;
        const double tokens_forgone = rule.tokens_per_ms * (rule.draft_ms + rule.verify_ms);
        return expected_tokens > tokens_forgone;
    }

    StopRule rule_;
    int n_drafted_ = 0;
    double acceptance_ = 1;  // of all drafts so far
};

}  // namespace knap

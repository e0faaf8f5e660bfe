// When to stop drafting, decided after each drafted token. The token that triggers the stop is kept
// and verified: dropping it because of its own probability would change the distribution of the
// text (docs/methods.md, "Conditions for exact sampling").
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "sampling/draft_sampler.h"

namespace knap {

// Drafts another token only while it pays (docs/methods.md, "Marginal stop rule"): while
//     (acceptance of all drafts so far) * mean_acceptance > tokens_per_ms * (draft_ms + verify_ms).
struct MarginalRule {
    static constexpr int kBins = 10;
    // The bin that holds a confidence.
    static std::size_t bin_of(float confidence);

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

// Applies a rule to one draft.
class StopState {
  public:
    explicit StopState(const StopRule& rule) : rule_(rule) {}

    // Whether to draft at all; for use before the first token.
    bool starts() const;
    // Records a drafted token and returns whether to draft another. `confidence` is ignored unless
    // the rule needs it.
    bool goes_on(float confidence, bool is_end_of_text);

  private:
    bool pays() const;

    const StopRule& rule_;
    int n_drafted_ = 0;
    double acceptance_ = 1;  // of all drafts so far
};

}  // namespace knap

// When to stop drafting, judged after each drafted token. The token that triggers the stop is kept
// and verified: dropping it for its own probability would change the distribution of the text
// (methods 1.6, condition 4).
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "sampling/draft_sampler.h"

namespace knap {

// Draft another token only while it pays (methods 3.15, O6): while
//     (acceptance of all drafts so far) * mean_acceptance > tokens_per_ms * (draft_ms + verify_ms).
struct MarginalRule {
    static constexpr int kBins = 10;
    // The bin that holds a confidence.
    static std::size_t bin_of(float confidence);

    // Measured acceptance of drafts by their confidence: bin i holds [i / kBins, (i + 1) / kBins).
    std::array<double, kBins> acceptance{};
    double mean_acceptance = 0;  // of the draft to come, whose confidence is not known yet
    double tokens_per_ms = 0;    // current throughput
    double draft_ms = 0;         // of one more draft step
    double verify_ms = 0;        // of one more row in the verification
};

struct StopRule {
    int n_max = 0;              // drafted tokens, at most
    float exit_confidence = 0;  // stop after a token less probable than this; 0: never
    ConfidenceOf confidence_of = ConfidenceOf::drafted;
    std::optional<MarginalRule> marginal{};

    // Whether the rule looks at confidences, which cost a pass over the vocabulary.
    bool needs_confidence() const { return exit_confidence > 0 || marginal.has_value(); }
};

// A rule being applied to one draft.
class StopState {
  public:
    explicit StopState(const StopRule& rule) : rule_(rule) {}

    // Before the first token: whether to draft at all.
    bool starts() const;
    // Takes a drafted token; true when drafting goes on. `confidence` is not looked at unless the
    // rule needs it.
    bool goes_on(float confidence, bool is_end_of_text);

  private:
    bool pays() const;

    const StopRule& rule_;
    int n_drafted_ = 0;
    double acceptance_ = 1;  // of all drafts so far
};

}  // namespace knap

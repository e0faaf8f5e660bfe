// Adaptive self-speculative decoding ("Draft on the Fly"; docs/methods.md, "ASD"): the model drafts
// with every MLP, but without the attentions that barely change the residual stream on the current
// text. They are chosen by the last rows of the prompt when a request begins. Drafts end as in
// Draft&Verify. The paper's thresholds and structural rules could not be read, so those here are
// knap's own.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "decode/asd/options.h"
#include "decode/draft_verify/adaptive_threshold.h"
#include "decode/strategy.h"

namespace knap {

class AsdStrategy final : public Strategy {
  public:
    AsdStrategy(const AsdOptions& options, const StrategyParts& parts);

    void begin(const RequestStart& request) override;
    Proposal propose(const RoundState& state) override;
    void observe(const RoundOutcome& outcome) override;
    std::span<const Decision> decisions() const override { return decisions_; }

  private:
    bool is_choice_due() const;
    void choose(std::span<const Token> history);

    AsdOptions options_;
    StrategyParts parts_;
    AdaptiveThreshold threshold_;

    // State of the current request.
    std::size_t n_prompt_ = 0;
    int round_ = 0;  // counts only rounds that may draft
    ModulePlan plan_;
    std::vector<Decision> decisions_;
};

std::unique_ptr<Strategy> build_asd(const SpeculationOptions& options, const StrategyParts& parts);

}  // namespace knap

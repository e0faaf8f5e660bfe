// Adaptive self-speculative decoding ("Draft on the Fly"; methods 8): the model drafts without the
// attentions that hardly turn the residual stream on the text at hand, and with every MLP. They are
// chosen when a request begins, by the prompt's last rows; drafts end as in Draft&Verify. The
// paper's own thresholds and structural rules are not public: this is the realisation that methods
// 8 proposes.
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

    // Of the request at hand.
    std::size_t n_prompt_ = 0;
    int round_ = 0;  // of those that may draft
    ModulePlan plan_;
    std::vector<Decision> decisions_;
};

std::unique_ptr<Strategy> build_asd(const SpeculationOptions& options, const StrategyParts& parts);

}  // namespace knap

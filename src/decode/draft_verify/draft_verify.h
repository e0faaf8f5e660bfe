// Draft&Verify (Zhang et al. 2023; docs/methods.md, "Draft&Verify"): one plan, found offline (`knap
// search`), drafts every round. The threshold that ends a draft follows the acceptance rate, from
// request to request. The paper's two ways of verifying are the engine's rules `equality` (its
// "essg") and `ratio` ("sss").
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "decode/draft_verify/adaptive_threshold.h"
#include "decode/static/static_plan.h"
#include "decode/strategy.h"

namespace knap {

class DraftVerifyStrategy final : public Strategy {
  public:
    DraftVerifyStrategy(StaticPlanStrategy drafting, const ThresholdOptions& threshold)
        : drafting_(std::move(drafting)), threshold_(threshold) {}

    Proposal propose(const RoundState& state) override;
    void observe(const RoundOutcome& outcome) override;

  private:
    StaticPlanStrategy drafting_;
    AdaptiveThreshold threshold_;
};

std::unique_ptr<Strategy> build_draft_verify(const SpeculationOptions& options,
                                             const StrategyParts& parts);
// The keys of --strategy-options.
std::span<const StrategyOptionInfo> draft_verify_option_infos();

}  // namespace knap

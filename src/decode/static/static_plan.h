// Drafting with a part of the model that the user has chosen: the same plan, length and exit
// threshold in every round (methods 1.3, 1.8). The LayerSkip early exit is the plan `exit=N`.
#pragma once

#include <memory>

#include "decode/strategy.h"

namespace knap {

struct StaticPlanOptions {
    int length = 6;             // tokens drafted in a row, at most
    float exit_confidence = 0;  // a less probable token is the draft's last; 0: none is
    int width = 1;              // candidates per position
};

class StaticPlanStrategy final : public Strategy {
  public:
    // `plan` must be one that can run (check_runnable).
    StaticPlanStrategy(ModulePlan plan, const StaticPlanOptions& options);

    Proposal propose(const RoundState& state) override;

  private:
    void adapt_to(int n_context);

    ModulePlan plan_;
    StaticPlanOptions options_;
    // The canonical form of plan_ at every context length of first_context_..last_context_.
    ModulePlan current_;
    int first_context_ = 0;
    int last_context_ = -1;
};

// From --draft-plan and the flags about drafting with it. Throws when there is no plan, or none
// that can run.
StaticPlanStrategy make_static_plan(const SpeculationOptions& options, const StrategyParts& parts);
std::unique_ptr<Strategy> build_static_plan(const SpeculationOptions& options,
                                            const StrategyParts& parts);

}  // namespace knap

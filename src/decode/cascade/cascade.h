// Drafts in two stages (docs/methods.md, "Cascade"): lookup guesses the next tokens, and a plan
// that the user has chosen checks the guess in one pass and continues from where it ends. The draft
// is exactly the plan's: a guess only saves passes.
#pragma once

#include <memory>
#include <utility>

#include "decode/lookup/lookup_source.h"
#include "decode/static/static_plan.h"
#include "decode/strategy.h"

namespace knap {

class CascadeStrategy final : public Strategy {
  public:
    explicit CascadeStrategy(StaticPlanStrategy drafting) : drafting_(std::move(drafting)) {}

    void begin(const RequestStart& request) override {
        source_.begin(request.prompt, request.references, request.prediction);
    }
    Proposal propose(const RoundState& state) override;

  private:
    StaticPlanStrategy drafting_;
    LookupSource source_;
};

std::unique_ptr<Strategy> build_cascade(const SpeculationOptions& options,
                                        const StrategyParts& parts);

}  // namespace knap

#include "decode/autoregressive/autoregressive.h"

namespace knap {

namespace {

class AutoregressiveStrategy final : public Strategy {
  public:
    Proposal propose(const RoundState& /*state*/) override { return {.draft = PlainStep{}}; }
    bool takes_forced_drafts() const override { return false; }  // one token per pass
};

}  // namespace

std::unique_ptr<Strategy> build_autoregressive(const SpeculationOptions& /*options*/,
                                               const StrategyParts& /*parts*/) {
    return std::make_unique<AutoregressiveStrategy>();
}

}  // namespace knap

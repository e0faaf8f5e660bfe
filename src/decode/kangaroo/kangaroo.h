// Kangaroo (Liu et al. 2024; docs/methods.md, "Kangaroo"): drafts with the model's first layers and
// a trained adapter before its head. It exits early twice: after those layers, and after a token
// with low confidence.
#pragma once

#include <memory>
#include <span>

#include "decode/kangaroo/adapter_head.h"
#include "decode/strategy.h"

namespace knap {

struct KangarooOptions {
    int length = 6;                // longest draft, in tokens
    float exit_confidence = 0.6f;  // stop after a token less probable than this
};

class KangarooStrategy final : public Strategy {
  public:
    // Throws when there is no adapter.
    KangarooStrategy(const KangarooOptions& options, const StrategyParts& parts);

    Proposal propose(const RoundState& state) override;
    void observe(const RoundOutcome& outcome) override;

  private:
    KangarooOptions options_;
    Forward& forward_;
    const Sequence& cache_;
    AdapterHead& head_;
    ModulePlan plan_;
    int capture_;              // streams at the exit layer
    std::vector<Token> kept_;  // the pending token, then the accepted drafts
};

std::unique_ptr<Strategy> build_kangaroo(const SpeculationOptions& options,
                                         const StrategyParts& parts);
std::span<const StrategyOptionInfo> kangaroo_option_infos();

}  // namespace knap

// Kangaroo (Liu et al., 2024; methods 10): draft with the model's first layers and a trained
// adapter in front of its head, and stop early twice: after those layers, and after a token that
// the draft is not sure of.
#pragma once

#include <memory>
#include <span>

#include "decode/kangaroo/adapter_head.h"
#include "decode/strategy.h"

namespace knap {

struct KangarooOptions {
    int length = 6;                // tokens drafted in a row, at most
    float exit_confidence = 0.6f;  // a less probable token is the draft's last
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
    const KvCache& cache_;
    AdapterHead& head_;
    ModulePlan plan_;
    int capture_;              // streams at the exit layer
    std::vector<Token> kept_;  // the pending token of the round at hand, then what it keeps
};

std::unique_ptr<Strategy> build_kangaroo(const SpeculationOptions& options,
                                         const StrategyParts& parts);
std::span<const StrategyOptionInfo> kangaroo_option_infos();

}  // namespace knap

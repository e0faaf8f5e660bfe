// CLaSp (docs/methods.md, "CLaSp"): skips whole layers, always the same number of them. Which ones
// depends on the text: every few rounds a search (layer_search.h) looks at the last accepted token
// of the round just verified, and the layers that it leaves draft until the next search. Before the
// first search the whole model drafts. Nothing is carried from request to request.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "decode/clasp/layer_search.h"
#include "decode/clasp/options.h"
#include "decode/strategy.h"

namespace knap {

class ClaspStrategy final : public Strategy {
  public:
    // Finds the layers to skip by the streams [n_embd, L + 1] of the token at cache row `row`.
    // Returns nullopt when cancelled.
    using Search =
        std::function<std::optional<SkippedLayers>(std::span<const float> streams, int row)>;

    ClaspStrategy(const ClaspOptions& options, int n_layers, int n_embd, Search search);

    void begin(const RequestStart& request) override;
    Proposal propose(const RoundState& state) override;
    void observe(const RoundOutcome& outcome) override;
    std::span<const Decision> decisions() const override { return decisions_; }

  private:
    bool searches_after(int round) const;
    void search(std::span<const Token> history);

    ClaspOptions options_;
    ModulePlan whole_model_;
    std::size_t n_embd_;
    std::vector<int> captures_;  // before every layer, and after the last
    Search search_;

    // State of the current request.
    std::size_t n_prompt_ = 0;
    int round_ = 0;  // the latest one
    ModulePlan plan_;
    std::vector<float> streams_;  // of the token to search on; empty: no search is due
    std::vector<Decision> decisions_;
};

std::unique_ptr<Strategy> build_clasp(const SpeculationOptions& options,
                                      const StrategyParts& parts);

}  // namespace knap

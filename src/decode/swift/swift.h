// SWIFT (Xia et al. 2024; methods 5): drafts with a fixed number of modules skipped, and searches
// while it decodes which ones. Between rounds a candidate is held against the first tokens of the
// answer; the best so far drafts. The search, its best score and its end last as long as the
// session. Drafts are chains with siblings, the more of them the less sure the draft is.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decode/strategy.h"
#include "decode/swift/options.h"
#include "decode/swift/swift_search.h"

namespace knap {

class SwiftStrategy final : public Strategy {
  public:
    // The matchness of a plan on `text`, tokens that follow `n_context` committed rows. None:
    // cancelled.
    using Matchness = std::function<std::optional<double>(
        const ModulePlan& plan, std::span<const Token> text, int n_context)>;

    // A plan for a model of `n_layers` layers has at least one module to skip.
    SwiftStrategy(const SwiftOptions& options, int n_layers, Matchness matchness);

    void begin(const RequestStart& request) override;
    Proposal propose(const RoundState& state) override;
    void observe(const RoundOutcome& outcome) override;
    std::span<const Decision> decisions() const override { return decisions_; }

  private:
    void search(std::span<const Token> answer);
    bool is_search_due(std::size_t n_answered) const;
    void decide(std::size_t n_answered, std::string reason);

    SwiftOptions options_;
    Matchness matchness_;
    SwiftSearch search_;

    // Of the request at hand.
    std::size_t n_prompt_ = 0;
    SwiftWidths widths_;
    int n_rounds_ = 0;
    std::vector<Decision> decisions_;
};

std::unique_ptr<Strategy> build_swift(const SpeculationOptions& options,
                                      const StrategyParts& parts);

}  // namespace knap

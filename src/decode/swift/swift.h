// SWIFT (Xia et al. 2024; docs/methods.md, "SWIFT"): skips a fixed number of modules in drafts, and
// searches for the best ones while it decodes. Between rounds one candidate is scored on the first
// tokens of the answer; the best so far drafts. The search, its best score and its end last as long
// as the session. Drafts are chains with siblings, more of them where the draft is less confident.
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
    // Returns the matchness of a plan on `text`, the tokens after the first `n_context` rows, or
    // nullopt when cancelled.
    using Matchness = std::function<std::optional<double>(
        const ModulePlan& plan, std::span<const Token> text, int n_context)>;

    // The options must leave at least one module to skip in a model of `n_layers` layers.
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

    // State of the current request.
    std::size_t n_prompt_ = 0;
    SwiftWidths widths_;
    int n_rounds_ = 0;
    std::vector<Decision> decisions_;
};

std::unique_ptr<Strategy> build_swift(const SpeculationOptions& options,
                                      const StrategyParts& parts);

}  // namespace knap

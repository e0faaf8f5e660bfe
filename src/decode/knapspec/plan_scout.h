// Finds the plan to draft with: keeps a pool of plans, replays them and searches for new ones as
// the budget allows, and chooses among them by predicted throughput (docs/methods.md, "Search
// budget" and "Replay").
#pragma once

#include <optional>
#include <string>

#include "decode/knapspec/decision_log.h"
#include "decode/knapspec/plan_pool.h"
#include "decode/knapspec/search_budget.h"
#include "decode/strategy.h"

namespace knap {

struct PlanScoutOptions {
    float margin = 0.03f;  // required gain over plain decoding
    int max_length = 10;   // longest draft, in tokens
    std::vector<Window> windows{};
    enum class Knapsack { when_it_pays, always, never };
    Knapsack knapsack = Knapsack::when_it_pays;
};

class PlanScout {
  public:
    PlanScout(const StrategyParts& parts, const PlanScoutOptions& options);

    void begin(const SamplingOptions& sampling);

    // Replays plans and searches for new ones if that is due, promising and within the budget.
    void look(const RoundState& state, const CostTracker& costs, SearchBudget& budget);
    // Chooses the plan for the coming rounds. reason() tells why it is this one, or none.
    void choose(const CostTracker& costs, int n_context);

    // Nullopt if no plan pays off.
    const std::optional<PlanPool::Rated>& chosen() const { return chosen_; }
    const PooledPlan& plan() const { return pool_.at(chosen_->index); }
    const Reason& reason() const { return reason_; }

    // Records a round drafted with the chosen plan: it took `ms`, and plain decoding would have
    // taken `plain_ms` for the same tokens. A plan that keeps losing time is suspended; then none
    // is chosen.
    void record_round(const RoundOutcome& outcome, double ms, double plain_ms, int n_context);

  private:
    bool is_due(int n_context) const;
    std::optional<PlanSearchOptions> affordable_search(
        const std::vector<PlanPool::Rated>& promising,
        const RoundState& state,
        const CostTracker& costs,
        double budget_ms) const;
    bool knapsack_pays(double cost_ms, const RoundState& state, const CostTracker& costs) const;
    void decline(const CostTracker& costs, int n_context);

    const StrategyParts parts_;
    PlanScoutOptions options_;
    PlanPool pool_;
    AgreementRule rule_;  // empty: greedy
    std::optional<PlanPool::Rated> chosen_;
    double rate_when_chosen_ = 0;
    int searched_at_ = -1;  // context of the last search; -1: none in this request
    Reason reason_;
};

}  // namespace knap

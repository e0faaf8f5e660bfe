// Finds the plan to draft with: keeps a pool of plans, has them replayed and searched for as the
// budget allows, and chooses among them by predicted throughput (methods 3.18, 3.19).
#pragma once

#include <optional>
#include <string>

#include "decode/knapspec/decision_log.h"
#include "decode/knapspec/plan_pool.h"
#include "decode/knapspec/search_budget.h"
#include "decode/strategy.h"

namespace knap {

struct PlanScoutOptions {
    float margin = 0.03f;  // over plain decoding
    int max_length = 10;   // tokens drafted in a row
    std::vector<Window> windows{};
    enum class Knapsack { when_it_pays, always, never };
    Knapsack knapsack = Knapsack::when_it_pays;
};

class PlanScout {
  public:
    PlanScout(const StrategyParts& parts, const PlanScoutOptions& options);

    void begin(const SamplingOptions& sampling);

    // Looks for plans where that is due, worth it and paid for.
    void look(const RoundState& state, const CostTracker& costs, SearchBudget& budget);
    // Chooses the plan for the rounds to come. `reason` says why it is this one, or none.
    void choose(const CostTracker& costs, int n_context);

    // None: no plan pays.
    const std::optional<PlanPool::Rated>& chosen() const { return chosen_; }
    const PooledPlan& plan() const { return pool_.at(chosen_->index); }
    const Reason& reason() const { return reason_; }

    // A round drafted with the chosen plan took `ms`; plain decoding would have taken `plain_ms`.
    // A plan that keeps losing time is suspended; then none is chosen.
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

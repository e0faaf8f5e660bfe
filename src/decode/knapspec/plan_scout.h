// Finds the plan to draft with: keeps a pool of plans, replays them on what is written, runs the
// knapsack piece by piece, and chooses among them by predicted throughput (docs/methods.md, "Search
// budget" and "Replay"). Pieces run within a request as its budget allows, and between requests.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decode/kept_rows.h"
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

    void begin(const RequestStart& request);

    // Replays plans and goes on with the knapsack, as far as that is due, promising and within the
    // budget.
    void look(const RoundState& state, const CostTracker& costs, SearchBudget& budget);
    // Whether a knapsack needs the streams of the next verification, all of them.
    bool wants_streams() const { return wants_streams_; }
    // Keeps them. `row` is the cache row of `pending`.
    void keep_streams(const RoundOutcome& outcome, Token pending, int row);
    // Does one piece of a knapsack while nobody waits; `text` is that of the committed rows.
    // Returns false if nothing is left to do, or if it was cancelled.
    bool use_idle_time(std::span<const Token> text, const CostTracker& costs);

    // Chooses the plan for the coming rounds. reason() tells why it is this one, or none.
    void choose(const CostTracker& costs, int n_context);

    // Nullopt if no plan pays off.
    const std::optional<PlanPool::Rated>& chosen() const { return chosen_; }
    const PooledPlan& plan() const { return pool_.at(chosen_->index); }
    const Reason& reason() const { return reason_; }

    // Records a round drafted with the chosen plan. A plan that keeps losing time is suspended;
    // then none is chosen.
    void record_round(const RoundOutcome& outcome, const RoundTime& time, int n_context);

  private:
    void grow(int n_context);
    bool is_due(int n_context) const;
    void replay_plans(const RoundState& state, const CostTracker& costs, SearchBudget& budget);
    std::vector<ModulePlan> promising_plans(const CostTracker& costs, int n_context) const;
    PlanSearchOptions knapsack_options(const CostTracker& costs, int n_context) const;
    void advance_knapsack(const RoundState& state, const CostTracker& costs, SearchBudget& budget);
    bool is_new(int n_context) const;
    bool wants_knapsack(const RoundState& state,
                        const CostTracker& costs,
                        const SearchBudget& budget) const;
    double knapsack_ms(const CostTracker& costs, int n_context) const;
    double saved_ms_per_token(const CostTracker& costs, int n_context) const;
    void start_knapsack(TargetRows target, std::span<const Token> text, const CostTracker& costs);
    bool is_on(std::span<const Token> text) const;
    void finish_knapsack(const CostTracker& costs);
    void learn(std::span<const FoundPlan> found, const CostTracker& costs, int n_context);
    void note_found(const CostTracker& costs) const;
    void decline(const CostTracker& costs, int n_context);

    const StrategyParts parts_;
    PlanScoutOptions options_;
    PlanPool pool_;
    TokenChoice draws_;  // empty: greedy
    std::size_t n_prompt_ = 0;
    std::optional<PlanPool::Rated> chosen_;
    double rate_when_chosen_ = 0;
    int replayed_at_ = -1;  // context of the last replays; -1: none in this request
    Reason reason_;

    KeptRows kept_;  // for the next knapsack
    bool wants_streams_ = false;
    std::unique_ptr<PlanSearch> knapsack_;  // under way, perhaps since an earlier request
    std::vector<Token> knapsack_text_;      // that it is about
    std::optional<int> knapsack_at_;        // context of the last one that was finished
};

}  // namespace knap

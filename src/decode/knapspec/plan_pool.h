// The plans that drafting may choose from, and what is known of each: uniform windows, plans saved
// by earlier runs, plans that a search has found (methods 3.18).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decode/knapspec/plan_acceptance.h"
#include "decode/knapspec/source_rating.h"
#include "decode/knapspec/speed_ledger.h"
#include "search/cost/cost_tracker.h"
#include "search/plan_search.h"
#include "search/saved_plans.h"

namespace knap {

struct PooledPlan {
    ModulePlan plan;
    AcceptancePrior belief;  // to begin with
    PlanAcceptance acceptance;
    SpeedLedger ledger{};
    int suspended_until = 0;  // length of the text up to which it is not tried again
    int n_suspensions = 0;
};

class PlanPool {
  public:
    PlanPool(int n_layers,
             HeadLevel cheapest_head,
             std::vector<Window> windows,
             std::span<const SavedPlan> saved);

    // Adds what makes sense at this context for the first time.
    void grow(int n_context);
    // Takes in what a search has found.
    void learn(std::span<const FoundPlan> found);
    // Leaves a plan alone for a while. Then it is tried with the belief that it had to begin with:
    // a text may have changed.
    void suspend(int index, int n_context);
    // Another text begins: plans stay, what was seen of them becomes a belief.
    void fade();

    int n_plans() const { return static_cast<int>(plans_.size()); }
    PooledPlan& at(int index) { return plans_[static_cast<std::size_t>(index)]; }
    const PooledPlan& at(int index) const { return plans_[static_cast<std::size_t>(index)]; }

    struct Rated {
        int index = -1;
        SourceRating rating{};
    };
    // The best plan by what is believed of it; none where the pool is empty or all are suspended.
    std::optional<Rated> best(const CostTracker& costs, int n_context, int max_length) const;
    // Plans that would write more than `tokens_per_ms` if `acceptance` of their drafts were
    // accepted, the most promising first: those that are worth a closer look.
    std::vector<Rated> promising(double acceptance,
                                 double tokens_per_ms,
                                 const CostTracker& costs,
                                 int n_context,
                                 int max_length) const;

  private:
    int find(const ModulePlan& plan) const;
    bool is_usable(const PooledPlan& pooled, int n_context) const;

    int n_layers_;
    HeadLevel cheapest_head_;
    std::vector<Window> windows_;
    std::span<const SavedPlan> saved_;
    std::vector<PooledPlan> plans_;
};

}  // namespace knap

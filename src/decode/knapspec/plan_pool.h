// The plans to choose from, and what is known of each: uniform windows (docs/methods.md, "Uniform
// windows"), plans saved by earlier runs ("Warm start"), and plans that a search has found ("Level
// knapsack").
#pragma once

#include <array>
#include <bitset>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decode/knapspec/plan_acceptance.h"
#include "decode/knapspec/source_rating.h"
#include "decode/knapspec/speed_ledger.h"
#include "decode/learned/learned.h"
#include "search/cost/cost_tracker.h"
#include "search/plan_search.h"
#include "search/saved_plans.h"

namespace knap {

struct PooledPlan {
    ModulePlan plan;
    PlanAcceptance acceptance;
    SpeedLedger ledger{};
    int suspended_until = 0;  // not used below this context length
    int n_suspensions = 0;
    // Where `acceptance` has what earlier runs saw: by context bucket, greedy and sampled.
    std::array<std::bitset<kContextBuckets>, 2> recalled{};
};

class PlanPool {
  public:
    static constexpr std::size_t kMaxPlans = 32;

    // `own_windows`: ModelConfig::windows().
    PlanPool(std::vector<int> own_windows,
             HeadLevel cheapest_head,
             std::vector<Window> windows,
             std::span<const SavedPlan> saved);

    // Adds the plans that suit this context and are not in the pool yet.
    void grow(int n_context);
    // Adds the plans that a search has found and records their replays.
    void learn(std::span<const FoundPlan> found);
    // Forgets the plans with the lowest predicted throughput until kMaxPlans are left, but no
    // window of the pool's own, no plan that was suspended in this text, and not `in_use` (-1:
    // none). Returns the index of the latter, which may have changed, as those of others.
    int forget_worst(const CostTracker& costs, int n_context, int max_length, int in_use);
    // Adds what earlier runs have seen of plans at contexts like this, which counts little, and
    // once.
    void recall(const Learned& known, int n_context, bool is_sampled);
    // Suspends a plan for a while. What is known of it stays.
    void suspend(int index, int n_context);
    // Another text begins: plans stay, what was observed counts less, and suspensions end.
    void fade();
    // Windows learn from each other (window_ladder.h).
    void share_evidence();

    int n_plans() const { return static_cast<int>(plans_.size()); }
    PooledPlan& at(int index) { return plans_[static_cast<std::size_t>(index)]; }
    const PooledPlan& at(int index) const { return plans_[static_cast<std::size_t>(index)]; }

    struct Rated {
        int index = -1;
        SourceRating rating{};
    };
    // The plan with the highest predicted throughput; none if no plan is usable.
    std::optional<Rated> best(const CostTracker& costs, int n_context, int max_length) const;
    // Plans that would exceed `tokens_per_ms` if at least `acceptance` of their drafts were
    // accepted, the most promising first. These are worth a replay.
    std::vector<Rated> promising(double acceptance,
                                 double tokens_per_ms,
                                 const CostTracker& costs,
                                 int n_context,
                                 int max_length) const;

  private:
    int find(const ModulePlan& plan) const;
    void add(const ModulePlan& plan, const AcceptancePrior& belief);
    void add_with_heads(ModulePlan plan, const AcceptancePrior& belief);
    ModulePlan window_plan(const Window& window, HeadLevel head) const;
    bool is_usable(const PooledPlan& pooled, int n_context) const;
    bool is_window(const ModulePlan& plan) const;

    std::vector<int> own_windows_;
    HeadLevel cheapest_head_;
    std::vector<Window> windows_;
    std::span<const SavedPlan> saved_;
    std::vector<PooledPlan> plans_;
};

}  // namespace knap

#include "decode/knapspec/plan_pool.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "decode/knapspec/suspension.h"

namespace knap {

namespace {

// At 7.6K tokens, more than nine in ten first drafts of a window are accepted (docs/methods.md,
// "Uniform windows"); later drafts are slightly less sure.
constexpr AcceptancePrior kWindowBelief{.accepted = 3.4, .rejected = 0.6};
constexpr AcceptancePrior kUnknownBelief{.accepted = 1.2, .rejected = 0.8};
// Weights, in drafts, of evidence from other texts: saved plans, and plans of the last request.
// They are low, so that the new text's own rounds soon outweigh them.
constexpr double kMaxSavedWeight = 12;
constexpr double kFadedWeight = 8;
// A saved plan is tried at context lengths within this factor of its own.
constexpr int kContextFactor = 2;
// A window that reads a larger share of the context saves too little.
constexpr double kMaxWindowShare = 0.75;
constexpr std::size_t kMaxPlans = 32;
// Acceptance with the reduced head, relative to the whole head: other tokens cannot be drafted.
constexpr double kReducedHeadShare = 0.95;

bool is_near(int n_context, int found_at) {
    return n_context <= kContextFactor * found_at && found_at <= kContextFactor * n_context;
}

bool has_room(const Window& window, int n_context) {
    return window.n_rows() < kMaxWindowShare * n_context;
}

}  // namespace

PlanPool::PlanPool(int n_layers,
                   HeadLevel cheapest_head,
                   std::vector<Window> windows,
                   std::span<const SavedPlan> saved)
    : n_layers_(n_layers),
      cheapest_head_(cheapest_head),
      windows_(std::move(windows)),
      saved_(saved) {}

void PlanPool::grow(int n_context) {
    const auto add_one = [&](const ModulePlan& plan, const AcceptancePrior& belief) {
        if (plans_.size() < kMaxPlans && find(plan) < 0) {
            plans_.push_back(
                {.plan = plan, .belief = belief, .acceptance = PlanAcceptance(belief)});
        }
    };
    const auto add = [&](ModulePlan plan, AcceptancePrior belief) {
        add_one(plan, belief);
        if (cheapest_head_ == HeadLevel::reduced) {
            plan.set_head(HeadLevel::reduced);
            belief = prior_of(kReducedHeadShare * shrunk_acceptance(0, 0, belief),
                              belief.accepted + belief.rejected);
            add_one(plan, belief);
        }
    };
    for (const Window& window : windows_) {
        if (has_room(window, n_context)) {
            add(uniform_window_plan(n_layers_, window), kWindowBelief);
        }
    }
    for (const SavedPlan& saved : saved_) {
        if (saved.n_rows > 0 && is_near(n_context, saved.n_context)) {
            add(saved.plan, prior_of(saved.agreed / saved.n_rows,
                                     std::min<double>(saved.n_rows, kMaxSavedWeight)));
        }
    }
}

void PlanPool::learn(std::span<const FoundPlan> found) {
    for (const FoundPlan& one : found) {
        int index = find(one.plan);
        if (index < 0 && plans_.size() < kMaxPlans) {
            index = n_plans();
            plans_.push_back({.plan = one.plan,
                              .belief = kUnknownBelief,
                              .acceptance = PlanAcceptance(kUnknownBelief)});
        }
        if (index >= 0) {
            at(index).acceptance.replay(one.n_agreed, one.n_rows);
        }
    }
}

void PlanPool::suspend(int index, int n_context) {
    PooledPlan& pooled = at(index);
    pooled.suspended_until =
        n_context + static_cast<int>(suspension_tokens(pooled.n_suspensions++));
    pooled.acceptance = PlanAcceptance(pooled.belief);
    pooled.ledger.clear();
}

void PlanPool::fade() {
    for (PooledPlan& pooled : plans_) {
        pooled.acceptance = PlanAcceptance(prior_of(pooled.acceptance.rate(), kFadedWeight));
        pooled.ledger.clear();
        pooled.suspended_until = 0;
        pooled.n_suspensions = 0;
    }
}

std::optional<PlanPool::Rated> PlanPool::best(const CostTracker& costs,
                                              int n_context,
                                              int max_length) const {
    std::optional<Rated> best;
    for (int i = 0; i < n_plans(); ++i) {
        if (!is_usable(at(i), n_context)) {
            continue;
        }
        const SourceRating rating =
            rate_plan(at(i).acceptance.by_depth(),
                      costs.round_cost(at(i).plan, n_context, max_length), max_length);
        if (!best || rating.tokens_per_ms() > best->rating.tokens_per_ms()) {
            best = Rated{.index = i, .rating = rating};
        }
    }
    return best;
}

std::vector<PlanPool::Rated> PlanPool::promising(double acceptance,
                                                 double tokens_per_ms,
                                                 const CostTracker& costs,
                                                 int n_context,
                                                 int max_length) const {
    std::vector<Rated> rated;
    for (int i = 0; i < n_plans(); ++i) {
        const double believed = std::max(acceptance, at(i).acceptance.rate());
        const SourceRating rating = rate_plan(
            {.rest = believed}, costs.round_cost(at(i).plan, n_context, max_length), max_length);
        if (is_usable(at(i), n_context) && rating.tokens_per_ms() > tokens_per_ms) {
            rated.push_back({.index = i, .rating = rating});
        }
    }
    std::ranges::stable_sort(rated, std::ranges::greater{},
                             [](const Rated& one) { return one.rating.tokens_per_ms(); });
    return rated;
}

int PlanPool::find(const ModulePlan& plan) const {
    const auto found = std::ranges::find(plans_, plan, &PooledPlan::plan);
    return found == plans_.end() ? -1 : static_cast<int>(found - plans_.begin());
}

// A suspended plan is not usable, nor is one whose windows cover the context: it is the whole
// model.
bool PlanPool::is_usable(const PooledPlan& pooled, int n_context) const {
    return n_context >= pooled.suspended_until && !canonical(pooled.plan, n_context).is_full();
}

}  // namespace knap

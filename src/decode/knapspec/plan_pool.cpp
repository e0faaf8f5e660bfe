#include "decode/knapspec/plan_pool.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "decode/knapspec/suspension.h"
#include "decode/knapspec/window_ladder.h"
#include "forward/plan_text.h"

namespace knap {

namespace {

// Of a plan that a search has found.
constexpr AcceptancePrior kUnknownBelief{.accepted = 1.2, .rejected = 0.8};
// Weights, in drafts, of evidence from other texts: saved plans, and plans of the last request.
// They are low, so that the new text's own rounds soon outweigh them.
constexpr double kMaxSavedWeight = 12;
constexpr double kFadedWeight = 8;
// The same of drafts of earlier runs, and of those at half or twice the context.
constexpr double kMostRecalledDrafts = 12;
constexpr double kMostFromNeighbour = 4;
// A saved plan is tried at context lengths within this factor of its own.
constexpr std::int64_t kContextFactor = 2;
// A window that reads a larger share of the context saves too little.
constexpr double kMaxWindowShare = 0.75;
// Acceptance with the reduced head, relative to the whole head: other tokens cannot be drafted.
constexpr double kReducedHeadShare = 0.95;

bool is_near(int n_context, int found_at) {
    return n_context <= kContextFactor * found_at && found_at <= kContextFactor * n_context;
}

AcceptancePrior with_reduced_head(const AcceptancePrior& belief) {
    return prior_of(kReducedHeadShare * shrunk_acceptance(0, 0, belief),
                    belief.accepted + belief.rejected);
}

SourceRating rate(const PooledPlan& pooled,
                  const CostTracker& costs,
                  int n_context,
                  int max_length) {
    return rate_plan(pooled.acceptance.by_depth(),
                     costs.round_cost(pooled.plan, n_context, max_length), max_length);
}

bool has_room(const Window& window, int n_context) {
    return window.n_rows() < kMaxWindowShare * n_context;
}

}  // namespace

PlanPool::PlanPool(std::vector<int> own_windows,
                   HeadLevel cheapest_head,
                   std::vector<Window> windows,
                   std::span<const SavedPlan> saved)
    : own_windows_(std::move(own_windows)),
      cheapest_head_(cheapest_head),
      windows_(std::move(windows)),
      saved_(saved) {}

void PlanPool::add(const ModulePlan& plan, const AcceptancePrior& belief) {
    if (find(plan) < 0) {
        plans_.push_back({.plan = plan, .acceptance = PlanAcceptance(belief)});
    }
}

// Every plan is worth trying with the reduced head.
void PlanPool::add_with_heads(ModulePlan plan, const AcceptancePrior& belief) {
    add(plan, belief);
    if (cheapest_head_ == HeadLevel::reduced && plan.head() == HeadLevel::full) {
        plan.set_head(HeadLevel::reduced);
        add(plan, with_reduced_head(belief));
    }
}

void PlanPool::grow(int n_context) {
    for (const Window& window : windows_) {
        if (has_room(window, n_context)) {
            add_with_heads(uniform_window_plan(window, own_windows_), kUnknownBelief);
        }
    }
    for (const SavedPlan& saved : saved_) {
        if (saved.n_rows > 0 && is_near(n_context, saved.n_context) && plans_.size() < kMaxPlans) {
            add_with_heads(within_own_windows(saved.plan, own_windows_),
                           prior_of(saved.agreed / saved.n_rows,
                                    std::min<double>(saved.n_rows, kMaxSavedWeight)));
        }
    }
}

void PlanPool::learn(std::span<const FoundPlan> found) {
    for (const FoundPlan& one : found) {
        add_with_heads(one.plan, kUnknownBelief);
        if (const int index = find(one.plan); index >= 0) {
            at(index).acceptance.replay(one.n_agreed, one.n_rows);
        }
        // What the reduced head would have accepted is not known, but most of it.
        ModulePlan reduced = one.plan;
        reduced.set_head(HeadLevel::reduced);
        if (const int index = find(reduced); index >= 0 && !(reduced == one.plan)) {
            at(index).acceptance.believe(with_reduced_head(
                prior_of(one.agreement(), std::min<double>(one.n_rows, kMaxSavedWeight))));
        }
    }
}

// A suspended plan that was forgotten would be found again and tried again.
int PlanPool::forget_worst(const CostTracker& costs, int n_context, int max_length, int in_use) {
    while (plans_.size() > kMaxPlans) {
        int worst = -1;
        double lowest = std::numeric_limits<double>::infinity();
        for (int i = 0; i < n_plans(); ++i) {
            if (i == in_use || at(i).n_suspensions > 0 || is_window(at(i).plan)) {
                continue;
            }
            const double speed = rate(at(i), costs, n_context, max_length).tokens_per_ms();
            if (speed < lowest) {
                lowest = speed;
                worst = i;
            }
        }
        if (worst < 0) {
            break;
        }
        plans_.erase(plans_.begin() + worst);
        in_use -= worst < in_use ? 1 : 0;
    }
    return in_use;
}

void PlanPool::recall(const Learned& known, int n_context, bool is_sampled) {
    const int bucket = context_bucket(n_context);
    for (PooledPlan& pooled : plans_) {
        auto& recalled = pooled.recalled[is_sampled ? 1 : 0];
        const auto has_recalled = [&](int at) { return recalled[static_cast<std::size_t>(at)]; };
        if (has_recalled(bucket)) {
            continue;
        }
        Learned::Way way{.name = to_string(canonical(pooled.plan, n_context)),
                         .bucket = bucket,
                         .is_sampled = is_sampled};
        DraftCounts seen = known.drafts_of(way).at_most(kMostRecalledDrafts);
        for (const int neighbour : {bucket - 1, bucket + 1}) {
            const bool is_new =
                neighbour >= 0 && neighbour < kContextBuckets && !has_recalled(neighbour);
            if (is_new && seen.all < kMostFromNeighbour) {
                way.bucket = neighbour;
                seen.add(known.drafts_of(way).at_most(kMostFromNeighbour - seen.all));
            }
        }
        pooled.acceptance.replay(seen.right, seen.all);
        recalled.set(static_cast<std::size_t>(bucket));
    }
}

void PlanPool::share_evidence() {
    std::vector<Window> sizes = windows_;
    std::ranges::sort(sizes, {}, &Window::recent);
    std::vector<WindowEvidence> seen;
    for (const Window& window : sizes) {
        WindowEvidence& evidence = seen.emplace_back(WindowEvidence{.recent = window.recent});
        for (const HeadLevel head : {HeadLevel::full, HeadLevel::reduced}) {
            if (const int index = find(window_plan(window, head)); index >= 0) {
                const AcceptancePrior own = at(index).acceptance.evidence();
                const double share = head == HeadLevel::reduced ? kReducedHeadShare : 1;
                const double judged = own.accepted + own.rejected;
                evidence.accepted += std::min(own.accepted / share, judged);
                evidence.judged += judged;
            }
        }
    }
    const std::vector<AcceptancePrior> beliefs = beliefs_from_others(seen);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        for (const HeadLevel head : {HeadLevel::full, HeadLevel::reduced}) {
            if (const int index = find(window_plan(sizes[i], head)); index >= 0) {
                at(index).acceptance.believe(
                    head == HeadLevel::reduced ? with_reduced_head(beliefs[i]) : beliefs[i]);
            }
        }
    }
}

ModulePlan PlanPool::window_plan(const Window& window, HeadLevel head) const {
    ModulePlan plan = uniform_window_plan(window, own_windows_);
    plan.set_head(head);
    return plan;
}

bool PlanPool::is_window(const ModulePlan& plan) const {
    return std::ranges::any_of(
        windows_, [&](const Window& window) { return plan == window_plan(window, plan.head()); });
}

void PlanPool::suspend(int index, int n_context) {
    PooledPlan& pooled = at(index);
    pooled.suspended_until =
        n_context + static_cast<int>(suspension_tokens(pooled.n_suspensions++));
    pooled.ledger.clear();
}

void PlanPool::fade() {
    for (PooledPlan& pooled : plans_) {
        pooled.acceptance.fade(kFadedWeight);
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
        const SourceRating rating = rate(at(i), costs, n_context, max_length);
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

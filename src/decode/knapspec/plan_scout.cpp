#include "decode/knapspec/plan_scout.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "forward/forward.h"
#include "forward/plan_text.h"
#include "model/config.h"
#include "sampling/overlap.h"

namespace knap {

namespace {

// The acceptance of first drafts with a good window (docs/methods.md, "Uniform windows"). A plan
// that would not pay off at this rate is not worth a replay.
constexpr double kOptimisticAcceptance = 0.95;
// What a knapsack search is assumed to find, to weigh against its cost: in one search of four, a
// plan that takes half the model's time (the paper's bound) and has nine drafts in ten accepted.
constexpr double kAssumedDraftShare = 0.5;
constexpr double kAssumedPlanAcceptance = 0.9;
constexpr double kAssumedSuccessRate = 0.25;
// A search is due again when the context has grown by this factor, or when the acceptance of the
// plan in use has dropped by this much.
constexpr double kContextGrowth = 1.5;
constexpr double kAcceptanceDrop = 0.1;
constexpr double kMinObserved = 24;
// A plan must beat the one in use by this factor.
constexpr double kChangeMargin = 1.02;
// Rows of a replay: fewer prove nothing, more are not worth their cost.
constexpr int kMinReplayRows = 8;
constexpr int kMaxReplayRows = 32;
constexpr int kMaxReplays = 4;
constexpr int kKnapsackRows = 16;
// The longest answer to plan for, whatever limit the request has.
constexpr int kTypicalAnswer = 512;

// The acceptance of a draft when sampling: the overlap of both distributions, or 0 for a row that
// nothing can be drawn from.
AgreementRule overlap_rule(const SamplingOptions& sampling) {
    if (sampling.temperature <= 0) {
        return {};
    }
    auto transform = std::make_shared<SamplingTransform>(sampling);
    return
        [transform](int /*position*/, std::span<const float> draft, std::span<const float> target) {
            try {
                Distribution q;
                Distribution p;
                transform->apply(draft, q);
                transform->apply(target, p);
                return overlap(p, q);
            } catch (const Error&) {
                return 0.0;
            }
        };
}

std::string percent(double share) {
    return concat(static_cast<int>(100 * share + 0.5), " %");
}

}  // namespace

PlanScout::PlanScout(const StrategyParts& parts, const PlanScoutOptions& options)
    : parts_(parts),
      options_(options),
      pool_(parts.config.n_layers, parts.forward.cheapest_head(), options.windows, parts.plans) {}

void PlanScout::begin(const SamplingOptions& sampling) {
    rule_ = overlap_rule(sampling);
    pool_.fade();
    chosen_.reset();
    searched_at_ = -1;
    reason_ = {};
}

bool PlanScout::is_due(int n_context) const {
    if (searched_at_ < 0 || n_context >= kContextGrowth * searched_at_) {
        return true;
    }
    return chosen_ && plan().acceptance.n_observed() >= kMinObserved &&
           plan().acceptance.rate() < rate_when_chosen_ - kAcceptanceDrop;
}

void PlanScout::look(const RoundState& state, const CostTracker& costs, SearchBudget& budget) {
    const int n_context = static_cast<int>(state.history.size()) - 1;
    if (!is_due(n_context)) {
        return;
    }
    pool_.grow(n_context);
    const double wanted = (1 + options_.margin) * costs.plain_tokens_per_ms(n_context);
    const auto promising =
        pool_.promising(kOptimisticAcceptance, wanted, costs, n_context, options_.max_length);
    const auto search = affordable_search(promising, state, costs, budget.left_ms());
    if (!search) {
        return;
    }
    const Stopwatch watch;
    const auto found = search_plans(parts_.forward, parts_.cache,
                                    state.history.first(static_cast<std::size_t>(n_context)),
                                    costs.model(), *search);
    budget.spend(watch.elapsed_ms());
    if (found) {
        searched_at_ = n_context;
        pool_.learn(*found);
        rate_when_chosen_ = 0;
    }
}

// Decides whether to run the knapsack. Otherwise splits the rows that the budget pays for between
// the whole model's pass and the replays of plans.
std::optional<PlanSearchOptions> PlanScout::affordable_search(
    const std::vector<PlanPool::Rated>& promising,
    const RoundState& state,
    const CostTracker& costs,
    double budget_ms) const {
    const int n_context = static_cast<int>(state.history.size()) - 1;
    PlanSearchOptions search{.n_rows = kKnapsackRows,
                             .windows = options_.windows,
                             .max_length = options_.max_length,
                             .rule = rule_};
    for (const PlanPool::Rated& rated : promising) {
        if (static_cast<int>(search.known.size()) < kMaxReplays) {
            search.known.push_back(pool_.at(rated.index).plan);
        }
    }
    const double row_ms = costs.verify_ms(kMaxReplayRows, n_context) / kMaxReplayRows;
    const double knapsack_ms = row_ms * predicted_rows(search, parts_.config.n_layers);
    search.runs_knapsack = options_.knapsack == PlanScoutOptions::Knapsack::always ||
                           (options_.knapsack == PlanScoutOptions::Knapsack::when_it_pays &&
                            knapsack_ms <= budget_ms && knapsack_pays(knapsack_ms, state, costs));
    if (search.runs_knapsack) {
        return search;
    }
    search.windows.clear();
    while (!search.known.empty()) {
        const double n_passes = 1 + static_cast<double>(search.known.size());
        const double n_rows = budget_ms / (row_ms * n_passes);
        if (n_rows >= kMinReplayRows) {
            search.n_rows = static_cast<int>(std::min<double>(n_rows, kMaxReplayRows));
            search.max_replays = static_cast<int>(search.known.size());
            return search;
        }
        search.known.pop_back();
    }
    return std::nullopt;
}

bool PlanScout::knapsack_pays(double cost_ms,
                              const RoundState& state,
                              const CostTracker& costs) const {
    const int n_context = static_cast<int>(state.history.size()) - 1;
    const double plain_ms = costs.plain_step_ms(n_context);
    RoundCost assumed_cost = costs.round_cost(n_context, options_.max_length);
    assumed_cost.draft_step_ms = kAssumedDraftShare * plain_ms;
    const double best_rate =
        rate_plan({.rest = kAssumedPlanAcceptance}, assumed_cost, options_.max_length)
            .tokens_per_ms();
    const double rate =
        chosen_ ? std::max(chosen_->rating.tokens_per_ms(), 1 / plain_ms) : 1 / plain_ms;
    const double saved_ms = std::min(state.n_expected, kTypicalAnswer) * (1 / rate - 1 / best_rate);
    return kAssumedSuccessRate * saved_ms > cost_ms;
}

void PlanScout::choose(const CostTracker& costs, int n_context) {
    pool_.grow(n_context);
    const double wanted = (1 + options_.margin) * costs.plain_tokens_per_ms(n_context);
    auto best = pool_.best(costs, n_context, options_.max_length);
    if (!best || best->rating.tokens_per_ms() < wanted) {
        chosen_.reset();
        decline(costs, n_context);
        return;
    }
    const bool is_same = chosen_ && chosen_->index == best->index;
    if (chosen_ && !is_same && pool_.at(chosen_->index).suspended_until <= n_context) {
        const SourceRating kept = rate_plan(
            plan().acceptance.by_depth(),
            costs.round_cost(plan().plan, n_context, options_.max_length), options_.max_length);
        if (best->rating.tokens_per_ms() < kChangeMargin * kept.tokens_per_ms() &&
            kept.tokens_per_ms() >= wanted) {
            best = PlanPool::Rated{.index = chosen_->index, .rating = kept};
        }
    }
    if (!chosen_ || chosen_->index != best->index || rate_when_chosen_ <= 0) {
        rate_when_chosen_ = pool_.at(best->index).acceptance.rate();
    }
    chosen_ = best;
    reason_ = {Reason::Kind::pays,
               concat("highest predicted speed of ", pool_.n_plans(), " plans, with ",
                      percent(rate_when_chosen_), " of drafts accepted")};
}

void PlanScout::decline(const CostTracker& costs, int n_context) {
    if (pool_.n_plans() == 0) {
        reason_ = {Reason::Kind::too_short,
                   "the context is too short for windows, and there are no saved plans"};
        return;
    }
    const auto optimistic =
        pool_.promising(kOptimisticAcceptance, 0, costs, n_context, options_.max_length);
    if (optimistic.empty()) {
        reason_ = {Reason::Kind::out_of_plans,
                   "every plan is suspended, or its windows cover the whole context"};
        return;
    }
    const double speedup =
        optimistic.front().rating.tokens_per_ms() / costs.plain_tokens_per_ms(n_context);
    const std::string best = to_string(pool_.at(optimistic.front().index).plan);
    if (speedup < 1 + options_.margin) {
        reason_ = {Reason::Kind::cannot_pay,
                   concat("no plan can pay off: ", best, " would reach ", percent(speedup),
                          " of the speed of plain decoding even with ",
                          percent(kOptimisticAcceptance), " of drafts accepted")};
    } else {
        reason_ = {Reason::Kind::not_known,
                   concat("no plan is known to pay off; the most promising is ", best)};
    }
}

void PlanScout::record_round(const RoundOutcome& outcome,
                             double ms,
                             double plain_ms,
                             int n_context) {
    if (!chosen_) {
        return;
    }
    PooledPlan& pooled = pool_.at(chosen_->index);
    pooled.acceptance.observe(outcome.tree.n_nodes(), static_cast<int>(outcome.path.size()),
                              outcome.confidences);
    pooled.ledger.add(ms, plain_ms);
    if (pooled.ledger.is_losing()) {
        reason_ = {
            Reason::Kind::lost_time,
            concat(to_string(pooled.plan), " reached only ", percent(pooled.ledger.speedup()),
                   " of the speed of plain decoding and is suspended")};
        pool_.suspend(chosen_->index, n_context);
        chosen_.reset();
    }
}

}  // namespace knap

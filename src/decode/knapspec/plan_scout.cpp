#include "decode/knapspec/plan_scout.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "decode/knapspec/plan_outcome.h"
#include "forward/forward.h"
#include "forward/plan_text.h"
#include "model/config.h"
#include "sampling/distribution.h"
#include "sampling/noise.h"

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
// A search is due again when the context has changed by this factor, or when the acceptance of the
// plan in use has dropped by this much.
constexpr double kContextChange = 1.5;
constexpr double kAcceptanceDrop = 0.1;
constexpr double kMinObserved = 24;
// A plan must beat the one in use by this factor.
constexpr double kChangeMargin = 1.02;
// Rows of a replay: fewer prove nothing, more are not worth their cost.
constexpr int kMinReplayRows = 8;
constexpr int kMaxReplayRows = 32;
constexpr int kMaxReplays = 4;
constexpr int kKnapsackRows = 16;
constexpr int kIdleRows = 32;

// What drafts draw while sampling: the same noise as the whole model (docs/methods.md, "Shared
// noise"). Nothing can be drawn from some rows; these agree with no token.
TokenChoice draws_of(const SamplingOptions& sampling) {
    if (sampling.temperature <= 0) {
        return {};
    }
    constexpr Token kNone = -1;
    auto transform = std::make_shared<SamplingTransform>(sampling);
    return [transform, seed = sampling.seed](int position, std::span<const float> logits) {
        try {
            Distribution distribution;
            transform->apply(logits, distribution);
            return draw(distribution, PositionNoise(seed, position));
        } catch (const Error&) {
            return kNone;
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
      pool_(parts.config.windows(), parts.forward.cheapest_head(), options.windows, parts.plans),
      kept_(parts.config.n_embd) {}

void PlanScout::begin(const RequestStart& request) {
    draws_ = draws_of(request.sampling);
    n_prompt_ = request.prompt.size();
    pool_.fade();
    chosen_.reset();
    replayed_at_ = -1;
    reason_ = {};
    kept_.clear();
    wants_streams_ = false;
}

void PlanScout::look(const RoundState& state, const CostTracker& costs, SearchBudget& budget) {
    grow(static_cast<int>(state.history.size()) - 1);
    replay_plans(state, costs, budget);
    advance_knapsack(state, costs, budget);
}

void PlanScout::grow(int n_context) {
    pool_.grow(n_context);
    if (parts_.known != nullptr) {
        pool_.recall(*parts_.known, n_context, static_cast<bool>(draws_));
    }
}

bool PlanScout::is_due(int n_context) const {
    if (replayed_at_ < 0 || n_context >= kContextChange * replayed_at_) {
        return true;
    }
    return chosen_ && plan().acceptance.n_observed() >= kMinObserved &&
           plan().acceptance.rate() < rate_when_chosen_ - kAcceptanceDrop;
}

std::vector<ModulePlan> PlanScout::promising_plans(const CostTracker& costs, int n_context) const {
    const double wanted = (1 + options_.margin) * costs.plain_tokens_per_ms(n_context);
    std::vector<ModulePlan> plans;
    for (const PlanPool::Rated& rated :
         pool_.promising(kOptimisticAcceptance, wanted, costs, n_context, options_.max_length)) {
        if (static_cast<int>(plans.size()) < kMaxReplays) {
            plans.push_back(pool_.at(rated.index).plan);
        }
    }
    return plans;
}

// On the tokens that are written: what the whole model chose is known. The rows that the budget
// pays for are split between the plans.
void PlanScout::replay_plans(const RoundState& state,
                             const CostTracker& costs,
                             SearchBudget& budget) {
    const int n_context = static_cast<int>(state.history.size()) - 1;
    TargetRows target = written_rows(state.history, n_prompt_, kMaxReplayRows);
    if (target.n_rows() < kMinReplayRows || !is_due(n_context)) {
        return;
    }
    PlanSearchOptions options{.runs_knapsack = false,
                              .max_replays = kMaxReplays,
                              .known = promising_plans(costs, n_context),
                              .max_length = options_.max_length,
                              .choose = draws_};
    const double row_ms = costs.verify_ms(kMaxReplayRows, n_context) / kMaxReplayRows;
    const auto n_affordable = [&] {
        return budget.left_ms() / (row_ms * static_cast<double>(options.known.size()));
    };
    while (!options.known.empty() && n_affordable() < kMinReplayRows) {
        options.known.pop_back();
    }
    if (options.known.empty()) {
        return;
    }
    const int n_rows = static_cast<int>(std::min<double>(n_affordable(), target.n_rows()));
    const Stopwatch watch;
    PlanSearch replays(parts_.forward, parts_.cache, costs.model(),
                       written_rows(state.history, n_prompt_, n_rows), std::move(options));
    bool is_complete = true;
    while (is_complete && !replays.is_done()) {
        is_complete = replays.advance();
    }
    budget.spend(watch.elapsed_ms());
    learn(replays.found(), costs, n_context);
    if (is_complete) {
        replayed_at_ = n_context;
        rate_when_chosen_ = 0;
    }
}

PlanSearchOptions PlanScout::knapsack_options(const CostTracker& costs, int n_context) const {
    return {.windows = options_.windows,
            .known = promising_plans(costs, n_context),
            .max_length = options_.max_length,
            .choose = draws_};
}

void PlanScout::advance_knapsack(const RoundState& state,
                                 const CostTracker& costs,
                                 SearchBudget& budget) {
    const auto text = state.history.first(state.history.size() - 1);
    const int n_context = static_cast<int>(text.size());
    if (!is_on(text)) {
        knapsack_.reset();
        wants_streams_ = wants_knapsack(state, costs, budget);
        if (!wants_streams_) {
            kept_.clear();
        } else if (kept_.rows().n_rows() >= kKnapsackRows) {
            TargetRows target = kept_.rows();
            const auto written = state.history.subspan(
                static_cast<std::size_t>(target.first_row) + 1, target.tokens.size());
            target.choices.assign(written.begin(), written.end());
            kept_.clear();
            wants_streams_ = false;
            start_knapsack(std::move(target), text, costs);
        }
    }
    const bool must_finish = options_.knapsack == PlanScoutOptions::Knapsack::always;
    const double row_ms = costs.verify_ms(kMaxReplayRows, n_context) / kMaxReplayRows;
    while (knapsack_ != nullptr &&
           (must_finish || knapsack_->next_rows() * row_ms <= budget.left_ms())) {
        const Stopwatch watch;
        const bool is_complete = knapsack_->advance();
        budget.spend(watch.elapsed_ms());
        if (!is_complete) {
            break;
        }
        if (knapsack_->is_done()) {
            finish_knapsack(costs);
        }
    }
}

// Whether no knapsack was finished at a context like this.
bool PlanScout::is_new(int n_context) const {
    return !knapsack_at_ || n_context >= kContextChange * *knapsack_at_ ||
           n_context * kContextChange <= *knapsack_at_;
}

// Whether the knapsack would be finished by the middle of what is left to write, and pay then. An
// answer is expected to go on for as long as it has.
bool PlanScout::wants_knapsack(const RoundState& state,
                               const CostTracker& costs,
                               const SearchBudget& budget) const {
    using Knapsack = PlanScoutOptions::Knapsack;
    const int n_context = static_cast<int>(state.history.size()) - 1;
    if (options_.knapsack != Knapsack::when_it_pays || !is_new(n_context)) {
        return options_.knapsack == Knapsack::always && is_new(n_context);
    }
    const auto n_written = static_cast<int>(state.history.size() - n_prompt_);
    const double n_left = expected_answer(n_written, state.n_expected) - n_written;
    const double cost_ms = knapsack_ms(costs, n_context);
    const double affordable_ms =
        budget.left_ms() + budget.share() * costs.plain_step_ms(n_context) * n_left / 2;
    return cost_ms <= affordable_ms &&
           kAssumedSuccessRate * saved_ms_per_token(costs, n_context) * n_left / 2 > cost_ms;
}

double PlanScout::knapsack_ms(const CostTracker& costs, int n_context) const {
    const double row_ms = costs.verify_ms(kMaxReplayRows, n_context) / kMaxReplayRows;
    return row_ms * predicted_rows(knapsack_options(costs, n_context), kKnapsackRows,
                                   parts_.config.n_layers);
}

// With a good plan, compared with what drafts now.
double PlanScout::saved_ms_per_token(const CostTracker& costs, int n_context) const {
    const double plain_ms = costs.plain_step_ms(n_context);
    RoundCost assumed_cost = costs.round_cost(n_context, options_.max_length);
    assumed_cost.draft_step_ms = kAssumedDraftShare * plain_ms;
    const double best_rate =
        rate_plan({.rest = kAssumedPlanAcceptance}, assumed_cost, options_.max_length)
            .tokens_per_ms();
    const double rate =
        chosen_ ? std::max(chosen_->rating.tokens_per_ms(), 1 / plain_ms) : 1 / plain_ms;
    return 1 / rate - 1 / best_rate;
}

void PlanScout::start_knapsack(TargetRows target,
                               std::span<const Token> text,
                               const CostTracker& costs) {
    const auto n_text = static_cast<std::size_t>(target.first_row) + target.tokens.size();
    KNAP_ASSERT(n_text <= text.size(), "the target's rows are committed");
    knapsack_text_.assign(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(n_text));
    knapsack_ =
        std::make_unique<PlanSearch>(parts_.forward, parts_.cache, costs.model(), std::move(target),
                                     knapsack_options(costs, static_cast<int>(text.size())));
}

// Whether the knapsack under way is about the beginning of `text`.
bool PlanScout::is_on(std::span<const Token> text) const {
    return knapsack_ != nullptr && knapsack_text_.size() <= text.size() &&
           std::ranges::equal(knapsack_text_, text.first(knapsack_text_.size()));
}

void PlanScout::learn(std::span<const FoundPlan> found, const CostTracker& costs, int n_context) {
    pool_.learn(found);
    const int in_use =
        pool_.forget_worst(costs, n_context, options_.max_length, chosen_ ? chosen_->index : -1);
    if (chosen_) {
        chosen_->index = in_use;
    }
}

void PlanScout::finish_knapsack(const CostTracker& costs) {
    const int n_context = static_cast<int>(knapsack_text_.size());
    learn(knapsack_->found(), costs, n_context);
    note_found(costs);
    knapsack_at_ = n_context;
    knapsack_.reset();
    rate_when_chosen_ = 0;
}

// Notes the plans of the knapsack that are predicted to pay, for later runs.
void PlanScout::note_found(const CostTracker& costs) const {
    if (parts_.notes == nullptr) {
        return;
    }
    const auto n_context = static_cast<int>(knapsack_text_.size());
    for (const FoundPlan& found : knapsack_->found()) {
        const SourceRating rating = rate_plan(
            {.rest = found.agreement()},
            costs.round_cost(found.plan, n_context, options_.max_length), options_.max_length);
        const double speed = rating.tokens_per_ms() / costs.plain_tokens_per_ms(n_context);
        if (found.source == FoundPlan::Source::knapsack && speed >= 1 + options_.margin) {
            parts_.notes->add_plan({.n_context = n_context,
                                    .plan = found.plan,
                                    .agreed = static_cast<double>(found.n_agreed),
                                    .n_rows = found.n_rows},
                                   speed);
        }
    }
}

void PlanScout::keep_streams(const RoundOutcome& outcome, Token pending, int row) {
    if (outcome.captures.empty()) {
        kept_.clear();  // the rows have to be consecutive
        return;
    }
    kept_.add(outcome, pending, row);
    kept_.limit(kKnapsackRows);
}

bool PlanScout::use_idle_time(std::span<const Token> text, const CostTracker& costs) {
    const auto n_context = static_cast<int>(text.size());
    if (!is_on(text)) {
        knapsack_.reset();
        if (options_.knapsack == PlanScoutOptions::Knapsack::never || !is_new(n_context) ||
            saved_ms_per_token(costs, n_context) <= 0) {
            return false;
        }
        grow(n_context);
        TargetRows target =
            collect_target_rows(parts_.forward, parts_.cache, text,
                                {.n_rows = kIdleRows, .streams = true, .choose = draws_});
        if (target.n_rows() < kMinReplayRows) {
            return false;
        }
        start_knapsack(std::move(target), text, costs);
    } else if (!knapsack_->advance()) {
        return false;
    }
    if (knapsack_->is_done()) {
        finish_knapsack(costs);
    }
    return true;
}

void PlanScout::choose(const CostTracker& costs, int n_context) {
    grow(n_context);
    pool_.share_evidence();
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

void PlanScout::record_round(const RoundOutcome& outcome, const RoundTime& time, int n_context) {
    if (!chosen_) {
        return;
    }
    PooledPlan& pooled = pool_.at(chosen_->index);
    const PlanOutcome drafts = outcome_of_plan(outcome.tree, outcome.path);
    pooled.acceptance.observe(drafts.n_drafted, drafts.n_accepted, outcome.confidences);
    if (drafts.is_second_right) {
        pooled.acceptance.observe_second(*drafts.is_second_right);
    }
    pooled.ledger.add(time);
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

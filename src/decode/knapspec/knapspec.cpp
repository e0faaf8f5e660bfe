#include "decode/knapspec/knapspec.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "forward/plan_text.h"
#include "model/config.h"

namespace knap {

namespace {

// Rounds between reviews of prices and plans, which change slowly.
constexpr int kRefreshRounds = 8;
// The longest plausible time of a round, in steps of plain decoding. Anything longer is due to the
// clock or to another program.
constexpr double kPlausibleSteps = 64;
// The rows of others change prices when they are more or fewer by this share.
constexpr double kLoadChange = 0.25;
// Length of a copy that is drafted to measure the cost of rows.
constexpr int kTrialLength = 3;
// A guessed token that is reached with a lower probability is not worth its row.
constexpr double kWorthGuessing = 0.3;
// Of a token that spells forced text. Other tokens can spell it too.
constexpr double kForcedAcceptance = 0.95;

// How many tokens of a copy are worth a row in a pass of a plan; at least one.
int worth_guessing(const CopyDrafts::Offer& offer, int max_length) {
    const int n_tokens = std::min(max_length, static_cast<int>(offer.tokens.size()));
    double reached = 1;
    int n = 0;
    while (n < n_tokens && (n == 0 || reached >= kWorthGuessing)) {
        reached *= offer.acceptance.at(n);
        ++n;
    }
    return n;
}

bool is_choice(const RoundState& state) {
    return state.forced == nullptr;
}

// A copy that spells what the grammar forces is right so far, but its last token may be a longer
// one.
void trust_forced(int n_agreeing, CopyDrafts::Offer& offer) {
    for (int i = 0; i + 1 < n_agreeing; ++i) {
        double& acceptance = offer.acceptance.first[static_cast<std::size_t>(i)];
        acceptance = std::max(acceptance, kForcedAcceptance);
    }
}

}  // namespace

KnapspecStrategy::KnapspecStrategy(const StrategyParts& parts, const KnapspecOptions& options)
    : options_(options),
      learner_(parts),
      budget_(options.budget),
      scout_(parts, options.scout),
      plan_(parts.config.n_layers) {}

void KnapspecStrategy::begin(const RequestStart& request) {
    budget_.begin();
    scout_.begin(request.sampling);
    copies_.begin(request);
    log_.begin();
    n_prompt_ = request.prompt.size();
    round_cost_ = {};
    refresh_in_ = 0;
    source_ = DraftSource::plain;
}

Proposal KnapspecStrategy::propose(const RoundState& state) {
    n_context_ = static_cast<int>(state.history.size()) - 1;
    source_ = DraftSource::plain;
    copies_.follow(state.history);
    budget_.advance(state.elapsed_ms,
                    round_cost_.verify_ms.empty() ? 0 : kPlausibleSteps * plain_ms());
    const bool has_new_load = follow(state.load);
    if (state.n_room <= 0 || learner_.costs() == nullptr) {
        return {.draft = PlainStep{}};
    }
    if (refresh_in_-- == 0 || has_new_load) {
        learn(state);
        refresh();
        refresh_in_ = kRefreshRounds;
    }
    return choose(state);
}

bool KnapspecStrategy::follow(const Load& load) {
    is_alone_ = load.n_sessions == 0;
    const double change = std::abs(load.others.n_rows - others_.n_rows);
    const bool is_similar = change < kLoadChange * (1 + others_.n_rows);
    if (change == 0 || (is_similar && load.others.n_rows > 0)) {
        return false;
    }
    others_ = load.others;
    learner_.set_others(others_);
    return true;
}

// Costs come first: without the cost of rows, draft sources cannot be compared. Nothing is measured
// while others are served: it would cost their time, and they would disturb it.
void KnapspecStrategy::learn(const RoundState& state) {
    if (!is_alone_) {
        return;
    }
    budget_.spend(learner_.learn(n_context_, budget_.left_ms()));
    if (options_.plans && learner_.knows_rows()) {
        scout_.look(state, *learner_.costs(), budget_);
    }
}

void KnapspecStrategy::refresh() {
    const CostTracker& costs = *learner_.costs();
    round_cost_ =
        costs.round_cost(n_context_, std::max(options_.scout.max_length, options_.max_copy));
    if (options_.plans && learner_.knows_rows()) {
        scout_.choose(costs, n_context_);
    }
    log_choice();
}

// Drafts a short copy to measure the cost of rows while it is unknown. Every row is assumed to cost
// a whole step, and the expected loss must fit the budget.
std::optional<Proposal> KnapspecStrategy::try_copy(const RoundState& state) {
    const int length = std::min(kTrialLength, state.n_room);
    const bool may_copy = options_.copies && is_alone_;
    const auto offer =
        may_copy ? copies_.offer(state.history, length, is_choice(state)) : std::nullopt;
    if (!offer) {
        return std::nullopt;
    }
    const double tokens = expected_tokens(offer->acceptance, length);
    const double risked_ms = (length + 1 - tokens) * plain_ms();
    if (risked_ms > budget_.left_ms()) {
        return std::nullopt;
    }
    source_ = DraftSource::copy;
    budget_.spend(risked_ms);
    return draft_copy(*offer, length);
}

Proposal KnapspecStrategy::choose(const RoundState& state) {
    if (!learner_.knows_rows()) {
        return try_copy(state).value_or(Proposal{.draft = PlainStep{}});
    }
    const int max_length = std::min(options_.scout.max_length, state.n_room);
    const SourceRating plain = rate_plain(round_cost_);
    const bool has_plan = scout_.chosen().has_value();
    const SourceRating usual = has_plan ? scout_.chosen()->rating : plain;
    // A copy must beat the rate without copies, and plain decoding by the margin.
    const double rate =
        std::max(usual.tokens_per_ms(), (1 + options_.scout.margin) * plain.tokens_per_ms());
    const int max_copy = std::min(options_.max_copy, state.n_room);
    auto offer =
        options_.copies ? copies_.offer(state.history, max_copy, is_choice(state)) : std::nullopt;
    if (offer && state.forced != nullptr) {
        trust_forced(state.forced->n_agreeing(offer->tokens), *offer);
    }
    if (offer) {
        const SourceRating copy = rate_copy(offer->acceptance, round_cost_, max_copy, rate);
        const SourceRating cascade = rate_cascade_of(*offer, max_length, rate);
        if (cascade.surplus(rate) > std::max(0.0, copy.surplus(rate))) {
            source_ = DraftSource::cascade;
            const auto n_guess = static_cast<std::size_t>(worth_guessing(*offer, max_length));
            return draft_with_plan(cascade, offer->tokens.first(n_guess));
        }
        if (copy.surplus(rate) > 0) {
            source_ = DraftSource::copy;
            return draft_copy(*offer, copy.length);
        }
    }
    if (has_plan) {
        source_ = DraftSource::plan;
        SourceRating within = usual;
        within.length = std::min(usual.length, max_length);
        return draft_with_plan(within, {});
    }
    return {.draft = PlainStep{}};
}

SourceRating KnapspecStrategy::rate_cascade_of(const CopyDrafts::Offer& offer,
                                               int max_length,
                                               double rate) const {
    if (!options_.cascades || !scout_.chosen()) {
        return {.tokens = 0, .ms = 0};
    }
    const CostTracker& costs = *learner_.costs();
    const PooledPlan& pooled = scout_.plan();
    const int n_guess = worth_guessing(offer, max_length);
    AcceptanceByDepth guess = offer.acceptance;
    guess.first.resize(static_cast<std::size_t>(n_guess));
    return rate_cascade(pooled.acceptance.by_depth(), guess,
                        {.round = costs.round_cost(pooled.plan, n_context_, max_length),
                         .check_ms = costs.draft_pass_ms(pooled.plan, n_context_, n_guess + 1)},
                        max_length, rate);
}

Proposal KnapspecStrategy::draft_copy(const CopyDrafts::Offer& offer, int length) {
    copy_.set_chain(offer.tokens.first(static_cast<std::size_t>(length)));
    return {.draft = DraftTokens{.tree = &copy_}};
}

Proposal KnapspecStrategy::draft_with_plan(const SourceRating& rating,
                                           std::span<const Token> guess) {
    plan_ = canonical(scout_.plan().plan, n_context_);
    return {.draft = DraftWithPlan{
                .plan = &plan_,
                .stop = {.n_max = rating.length, .marginal = marginal_rule(rating)},
                .guess = guess,
            }};
}

MarginalRule KnapspecStrategy::marginal_rule(const SourceRating& rating) const {
    const PlanAcceptance& acceptance = scout_.plan().acceptance;
    const auto last = static_cast<std::size_t>(rating.length);
    return {
        .acceptance = acceptance.by_confidence(),
        .mean_acceptance = acceptance.rate(),
        .tokens_per_ms = rating.tokens_per_ms(),
        .draft_ms = learner_.costs()->draft_step_ms(scout_.plan().plan, n_context_),
        .verify_ms = (round_cost_.verify_ms[last] - plain_ms()) / rating.length,
    };
}

void KnapspecStrategy::log_choice() {
    const auto n_written = static_cast<int>(static_cast<std::size_t>(n_context_) + 1 - n_prompt_);
    if (!learner_.knows_rows()) {
        log_.decide({.token = n_written,
                     .source = "plain",
                     .reason = "the cost of drafting has not been measured yet",
                     .predicted = 1},
                    Reason::Kind::not_measured);
        return;
    }
    const auto& chosen = scout_.chosen();
    const std::string plan = chosen ? to_string(scout_.plan().plan) : "";
    const Reason reason = options_.plans
                              ? scout_.reason()
                              : Reason{Reason::Kind::switched_off, "plans are switched off"};
    const bool may_copy = options_.copies && !copies_.is_suspended();
    log_.decide(
        {.token = n_written,
         .source = concat(chosen ? plan : "plain", may_copy ? ", copies where they pay" : ""),
         .plan = plan,
         .reason = reason.text,
         .predicted =
             chosen ? chosen->rating.tokens_per_ms() / rate_plain(round_cost_).tokens_per_ms() : 1},
        reason.kind);
}

void KnapspecStrategy::observe(const RoundOutcome& outcome) {
    if (outcome.is_forced) {
        source_ = DraftSource::plain;  // what was proposed was not drafted
    }
    const int n_drafted = outcome.tree.n_nodes();
    const bool knew_rows = learner_.knows_rows();
    const bool has_plan = source_ == DraftSource::plan || source_ == DraftSource::cascade;
    // If the plan has exact leading layers, the verification did not compute the whole model for
    // every row.
    const PassFacts& pass = outcome.verify_pass;
    if ((!has_plan || exact_layers(plan_) == 0) && !pass.reads_prompts) {
        learner_.observe_verify(n_drafted + 1 + pass.n_others, n_context_, outcome.own_verify_ms);
    }
    if (source_ == DraftSource::plan) {
        learner_.observe_draft(plan_, n_context_, n_drafted, outcome.own_draft_ms);
    }
    if (knew_rows != learner_.knows_rows()) {
        refresh_in_ = 0;
    }
    if (!round_cost_.verify_ms.empty() && !pass.reads_prompts) {
        record_round(outcome);
    }
}

// Records the round's time and that of plain decoding for the same tokens, in the log and for the
// draft source, which is suspended if it keeps losing time. Other sessions get tokens from the pass
// too. If this one went without them, they have a pass of their own.
void KnapspecStrategy::record_round(const RoundOutcome& outcome) {
    const CostTracker& costs = *learner_.costs();
    const PassFacts& pass = outcome.verify_pass;
    double ms = outcome.own_draft_ms + outcome.own_verify_ms;
    OtherWork others = pass.others();
    if (pass.n_others == 0 && costs.others().n_rows >= 1) {
        others = costs.others();
        ms += costs.verify_ms(static_cast<int>(std::lround(others.n_rows)), n_context_);
    }
    const double n_tokens = static_cast<double>(outcome.emitted.size()) + others.n_tokens;
    const double plain_ms = costs.plain_ms(n_tokens, n_context_, others);
    log_.add_round(ms, plain_ms);
    switch (source_) {
        case DraftSource::plain:
            break;
        case DraftSource::copy:
            if (!copies_.record_round(ms, plain_ms)) {
                refresh_in_ = 0;
            }
            break;
        case DraftSource::plan:
        case DraftSource::cascade:
            scout_.record_round(outcome, ms, plain_ms, n_context_);
            if (!scout_.chosen()) {
                refresh_in_ = 0;
            }
            break;
    }
}

std::unique_ptr<Strategy> build_knapspec(const SpeculationOptions& options,
                                         const StrategyParts& parts) {
    return std::make_unique<KnapspecStrategy>(parts, read_knapspec_options(options));
}

}  // namespace knap

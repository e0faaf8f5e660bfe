#include "decode/knapspec/knapspec.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include "base/text.h"
#include "forward/forward.h"
#include "forward/plan_text.h"
#include "model/config.h"

namespace knap {

namespace {

// Rounds between reviews of prices and plans, which change slowly.
constexpr int kRefreshRounds = 8;
// The same while drafts have no price.
constexpr int kHurriedRounds = 4;
// The longest plausible time of a round, in steps of plain decoding. Anything longer is due to the
// clock or to another program.
constexpr double kPlausibleSteps = 64;
// A round during which the system took a core away counts as at most so many times its expected
// time when its source is judged: the rest is not the source's.
constexpr double kMostDisturbed = 2;
// The rows of others change prices when they are more or fewer by this share.
constexpr double kLoadChange = 0.25;
// Length of a copy that is drafted to measure the cost of rows.
constexpr int kTrialLength = 3;
// A guessed token that is reached with a lower probability is not worth its row.
constexpr double kWorthGuessing = 0.3;
// Of a token that spells forced text. Other tokens can spell it too.
constexpr double kForcedAcceptance = 0.95;

// The most likely path of a copy, as far as its tokens are worth a row in a pass of a plan, but at
// least one token.
std::vector<CopyNode> worth_guessing(std::span<const CopyNode> copy, int max_length) {
    std::vector<CopyNode> path;
    int last = kPendingNode;
    for (int node = 0; node < static_cast<int>(copy.size()); ++node) {
        const CopyNode& next = copy[static_cast<std::size_t>(node)];
        const bool is_likely = path.empty() || path.back().reached >= kWorthGuessing;
        if (next.parent == last && is_likely && static_cast<int>(path.size()) < max_length) {
            path.push_back(next);
            last = node;
        }
    }
    return path;
}

// Of the number of tokens that a round with this copy emits.
double variance_of_copy(std::span<const CopyNode> nodes) {
    std::vector<std::size_t> depths;
    std::vector<double> reached;  // by depth
    for (const CopyNode& node : nodes) {
        const std::size_t depth =
            node.parent == kPendingNode ? 0 : depths[static_cast<std::size_t>(node.parent)] + 1;
        depths.push_back(depth);
        reached.resize(std::max(reached.size(), depth + 1));
        reached[depth] += node.reached;
    }
    return variance_of_tokens(reached);
}

bool is_choice(const RoundState& state) {
    return state.forced == nullptr;
}

// A copy that spells what the grammar forces is right so far, but its last token may be a longer
// one.
void trust_forced(const ForcedText& forced, std::vector<CopyNode>& chain) {
    std::vector<Token> tokens;
    std::ranges::transform(chain, std::back_inserter(tokens), &CopyNode::token);
    const auto n_agreeing = static_cast<std::size_t>(forced.n_agreeing(tokens));
    double believed = 1;  // that all before the token are right
    double reached = 1;   // the same with what is known of the grammar
    for (std::size_t i = 0; i < chain.size(); ++i) {
        const double acceptance = chain[i].reached / std::exchange(believed, chain[i].reached);
        reached *= i + 1 < n_agreeing ? std::max(acceptance, kForcedAcceptance) : acceptance;
        chain[i].reached = reached;
    }
}

}  // namespace

KnapspecStrategy::KnapspecStrategy(const StrategyParts& parts, const KnapspecOptions& options)
    : options_(options),
      learner_(parts),
      budget_(options.budget),
      scout_(parts, options.scout),
      copies_(parts.trees_are_exact, parts.known, parts.notes),
      may_branch_(parts.trees_are_exact && parts.forward.max_chain(0) == 0),
      plan_(parts.config.n_layers),
      all_streams_(2 * static_cast<std::size_t>(parts.config.n_layers) + 1) {
    std::iota(all_streams_.begin(), all_streams_.end(), 0);
}

void KnapspecStrategy::begin(const RequestStart& request) {
    budget_.begin();
    const SpendingTime spending(budget_);
    scout_.begin(request);
    copies_.begin(request);
    log_.begin();
    n_prompt_ = request.prompt.size();
    round_cost_ = {};
    refresh_in_ = 0;
    source_ = DraftSource::plain;
}

Proposal KnapspecStrategy::propose(const RoundState& state) {
    const SpendingTime spending(budget_);
    n_context_ = static_cast<int>(state.history.size()) - 1;
    pending_ = state.history.back();
    source_ = DraftSource::plain;
    is_trial_ = false;
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
        refresh_in_ = learner_.lacks_prices() ? kHurriedRounds : kRefreshRounds;
    }
    Proposal proposal = choose(state);
    if (scout_.wants_streams()) {
        proposal.captures = all_streams_;
    }
    return proposal;
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
    budget_.spend(learner_.learn(n_context_, budget_.left_ms(), left_with_loan_ms(state)));
    if (options_.plans && learner_.knows_rows()) {
        scout_.look(state, *learner_.costs(), budget_);
    }
}

double KnapspecStrategy::left_with_loan_ms(const RoundState& state) const {
    const auto n_written = static_cast<int>(state.history.size() - n_prompt_);
    return budget_.left_with_loan_ms(n_written, expected_answer(n_written, state.n_expected),
                                     learner_.costs()->plain_step_ms(n_context_));
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

// Drafts a short copy to measure the cost of rows while it is unknown or in doubt. Every row is
// assumed to cost a whole step, and the expected loss must fit the budget and the loan.
std::optional<Proposal> KnapspecStrategy::try_copy(const RoundState& state) {
    const int length = std::min(kTrialLength, state.n_room);
    const auto copy = is_alone_ ? offer_copy(state, length) : std::vector<CopyNode>();
    if (copy.empty()) {
        return std::nullopt;
    }
    double risked_ms = 0;
    for (const CopyNode& node : copy) {
        risked_ms += (1 - node.reached) * plain_ms();
    }
    if (risked_ms > left_with_loan_ms(state)) {
        return std::nullopt;
    }
    source_ = DraftSource::copy;
    is_trial_ = true;
    budget_.spend(risked_ms);
    return draft_copy(copy);
}

std::vector<CopyNode> KnapspecStrategy::offer_copy(const RoundState& state, int max_nodes) {
    if (!options_.copies) {
        return {};
    }
    std::vector<CopyNode> copy = copies_.offer(max_nodes, is_choice(state));
    if (state.forced != nullptr) {
        trust_forced(*state.forced, copy);
    }
    return copy;
}

Proposal KnapspecStrategy::choose(const RoundState& state) {
    if (!learner_.knows_rows() || learner_.doubts_rows()) {
        if (std::optional<Proposal> trial = try_copy(state)) {
            return *trial;
        }
    }
    if (!learner_.knows_rows()) {
        return {.draft = PlainStep{}};
    }
    const int max_length = std::min(options_.scout.max_length, state.n_room);
    const SourceRating plain = rate_plain(round_cost_);
    const bool has_plan = scout_.chosen().has_value();
    const SourceRating usual = has_plan ? scout_.chosen()->rating : plain;
    // A copy must beat the rate without copies, and plain decoding by the margin.
    const double rate =
        std::max(usual.tokens_per_ms(), (1 + options_.scout.margin) * plain.tokens_per_ms());
    const int max_copy = std::min(options_.max_copy, state.n_room);
    const std::vector<CopyNode> copy = offer_copy(state, max_copy);
    if (!copy.empty()) {
        std::vector<double> reached;
        std::ranges::transform(copy, std::back_inserter(reached), &CopyNode::reached);
        const SourceRating rating = rate_copy(reached, round_cost_, max_copy, rate);
        const std::vector<CopyNode> guess = worth_guessing(copy, max_length);
        const SourceRating cascade = rate_cascade_of(guess, max_length, rate);
        if (cascade.surplus(rate) > std::max(0.0, rating.surplus(rate))) {
            source_ = DraftSource::cascade;
            return draft_guess(cascade, guess);
        }
        if (rating.surplus(rate) > 0) {
            source_ = DraftSource::copy;
            return draft_copy(std::span(copy).first(static_cast<std::size_t>(rating.length)));
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

SourceRating KnapspecStrategy::rate_cascade_of(std::span<const CopyNode> guess,
                                               int max_length,
                                               double rate) const {
    if (!options_.cascades || !scout_.chosen()) {
        return {.tokens = 0, .ms = 0};
    }
    const CostTracker& costs = *learner_.costs();
    const PooledPlan& pooled = scout_.plan();
    AcceptanceByDepth of_guess;
    double before = 1;
    for (const CopyNode& node : guess) {
        of_guess.first.push_back(node.reached / std::exchange(before, node.reached));
    }
    const int n_rows = static_cast<int>(guess.size()) + 1;
    return rate_cascade(pooled.acceptance.by_depth(), of_guess,
                        {.round = costs.round_cost(pooled.plan, n_context_, max_length),
                         .check_ms = costs.draft_pass_ms(pooled.plan, n_context_, n_rows)},
                        max_length, rate);
}

Proposal KnapspecStrategy::draft_copy(std::span<const CopyNode> nodes) {
    copy_variance_ = variance_of_copy(nodes);
    copy_.clear();
    for (const CopyNode& node : nodes) {
        copy_.add(node.token, node.parent);
    }
    return {.draft = DraftTokens{.tree = &copy_}};
}

Proposal KnapspecStrategy::draft_guess(const SourceRating& rating,
                                       std::span<const CopyNode> guess) {
    guess_.clear();
    std::ranges::transform(guess, std::back_inserter(guess_), &CopyNode::token);
    return draft_with_plan(rating, guess_);
}

Proposal KnapspecStrategy::draft_with_plan(const SourceRating& rating,
                                           std::span<const Token> guess) {
    plan_ = canonical(scout_.plan().plan, n_context_);
    DraftWithPlan draft{
        .plan = &plan_,
        .stop = {.n_max = rating.length, .marginal = marginal_rule(rating)},
        .guess = guess,
    };
    single_ = {.above = static_cast<float>(sure_enough(rating)), .width = 1};
    if (single_.above > 0) {
        draft.width = 2;
        draft.width_steps = std::span(&single_, 1);
    }
    return {.draft = draft};
}

// A second candidate is right with the probability that the first is not, times how often it is
// then. Its row has to pay for itself, at the mean probability that a draft's position is reached.
// Devices that draft chains by themselves draft no others.
double KnapspecStrategy::sure_enough(const SourceRating& rating) const {
    if (!may_branch_ || rating.length <= 0) {
        return 0;
    }
    const PlanAcceptance& acceptance = scout_.plan().acceptance;
    const AcceptanceByDepth by_depth = acceptance.by_depth();
    const double reached = expected_tokens(by_depth, rating.length - 1) / rating.length;
    const double worth = reached * acceptance.rate_of_seconds();
    return std::max(0.0, 1 - rating.tokens_per_ms() * row_ms(rating.length) / worth);
}

// One more row of a verification with a draft of `length` tokens.
double KnapspecStrategy::row_ms(int length) const {
    return (round_cost_.verify_ms[static_cast<std::size_t>(length)] - plain_ms()) / length;
}

MarginalRule KnapspecStrategy::marginal_rule(const SourceRating& rating) const {
    const PlanAcceptance& acceptance = scout_.plan().acceptance;
    return {
        .acceptance = acceptance.by_confidence(),
        .mean_acceptance = acceptance.rate(),
        .tokens_per_ms = rating.tokens_per_ms(),
        .draft_ms = learner_.costs()->draft_step_ms(scout_.plan().plan, n_context_),
        .verify_ms = row_ms(rating.length),
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
    const SpendingTime spending(budget_);
    if (outcome.is_forced) {
        source_ = DraftSource::plain;  // what was proposed was not drafted
    }
    if (scout_.wants_streams()) {
        scout_.keep_streams(outcome, pending_, n_context_);
    }
    const int n_drafted = outcome.tree.n_nodes();
    const bool knew_rows = learner_.knows_rows();
    const bool has_plan = source_ == DraftSource::plan || source_ == DraftSource::cascade;
    // If the plan has exact leading layers, the verification did not compute the whole model for
    // every row.
    const PassFacts& pass = outcome.verify_pass;
    if ((!has_plan || exact_layers(plan_) == 0) && !pass.reads_prompts) {
        learner_.observe_verify(
            n_drafted + 1 + pass.n_others, n_context_,
            {.ms = outcome.own_verify_ms, .was_disturbed = outcome.was_disturbed});
    }
    if (source_ == DraftSource::plan) {
        learner_.observe_draft(plan_, n_context_, outcome.tree.max_depth(), outcome.own_draft_ms);
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
    const double ms = outcome.own_draft_ms + outcome.own_verify_ms;
    const double blamed_ms =
        outcome.was_disturbed ? std::min(ms, kMostDisturbed * expected_ms(outcome)) : ms;
    OtherWork others = pass.others();
    double others_ms = 0;
    if (pass.n_others == 0 && costs.others().n_rows >= 1) {
        others = costs.others();
        others_ms = costs.verify_ms(static_cast<int>(std::lround(others.n_rows)), n_context_);
    }
    const double n_tokens = static_cast<double>(outcome.emitted.size()) + others.n_tokens;
    const double plain_ms = costs.plain_ms(n_tokens, n_context_, others);
    const RoundTime time{.ms = blamed_ms + others_ms,
                         .plain_ms = plain_ms,
                         .step_ms = plain_ms / n_tokens,
                         .variance = expected_variance(outcome)};
    log_.add_round(ms + others_ms, plain_ms);
    if (is_trial_) {
        return;  // it was to show the price of rows, and is paid for
    }
    switch (source_) {
        case DraftSource::plain:
            break;
        case DraftSource::copy:
            if (!copies_.record_round(time)) {
                refresh_in_ = 0;
            }
            break;
        case DraftSource::plan:
        case DraftSource::cascade:
            scout_.record_round(outcome, time, n_context_);
            if (!scout_.chosen()) {
                refresh_in_ = 0;
            }
            break;
    }
}

// By the prices after this round.
double KnapspecStrategy::expected_ms(const RoundOutcome& outcome) const {
    const CostTracker& costs = *learner_.costs();
    const bool has_plan = source_ == DraftSource::plan || source_ == DraftSource::cascade;
    const int n_rows = outcome.tree.n_nodes() + 1 + outcome.verify_pass.n_others;
    return costs.verify_ms(n_rows, n_context_) +
           (has_plan ? outcome.tree.max_depth() * costs.draft_step_ms(plan_, n_context_) : 0);
}

// Of the number of tokens that the round emits. Where a plan's draft ended is known, and what its
// second candidates add is left out.
double KnapspecStrategy::expected_variance(const RoundOutcome& outcome) const {
    if (source_ == DraftSource::copy) {
        return copy_variance_;
    }
    const bool has_plan = source_ == DraftSource::plan || source_ == DraftSource::cascade;
    return has_plan
               ? variance_of_tokens(scout_.plan().acceptance.by_depth(), outcome.tree.max_depth())
               : 0;
}

// Costs come first, as in a request. Nobody waits, so no budget bounds them.
bool KnapspecStrategy::use_idle_time(std::span<const Token> text) {
    follow({});
    if (learner_.use_idle_time(static_cast<int>(text.size())) > 0) {
        return true;
    }
    return options_.plans && learner_.knows_rows() && scout_.use_idle_time(text, *learner_.costs());
}

std::unique_ptr<Strategy> build_knapspec(const SpeculationOptions& options,
                                         const StrategyParts& parts) {
    return std::make_unique<KnapspecStrategy>(parts, read_knapspec_options(options));
}

}  // namespace knap

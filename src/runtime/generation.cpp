#include "runtime/generation.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <sys/resource.h>

#include "base/clock.h"
#include "base/text.h"
#include "decode/advance.h"
#include "decode/learned/learned_round.h"
#include "device/ggml_log.h"
#include "forward/plan_text.h"
#include "graph/attention/attention_policy.h"
#include "runtime/files/machine_fingerprint.h"

namespace knap {
namespace {

std::int64_t peak_rss_bytes() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return std::int64_t{usage.ru_maxrss} * 1024;
}

SamplingOptions effective_sampling(const GenerateOptions& options, const Tokenizer& tokenizer) {
    SamplingOptions sampling = options.sampling;
    if (options.ignore_eos) {
        for (const Token token : tokenizer.end_of_generation()) {
            sampling.logit_bias.emplace_back(token, -std::numeric_limits<float>::infinity());
        }
    }
    return sampling;
}

// A path that is not the beginning of the tree was computed at other rows of the cache than plain
// decoding has it, which rounds differently unless the session has exact trees.
bool lies_in_place(std::span<const int> path) {
    return path.empty() || path.back() == static_cast<int>(path.size()) - 1;
}

}  // namespace

Generation::Generation(Session::Impl& session,
                       const GenerateOptions& options,
                       const Observer& observer,
                       Strategy& strategy)
    : session_(session),
      options_(options),
      observer_(observer),
      tokenizer_(*session.engine.tokenizer),
      constraint_(AnswerConstraint::of(options, tokenizer_)),
      sampler_(effective_sampling(options, tokenizer_),
               session.engine.model.n_vocab,
               session.engine.config.n_ctx),
      events_(observer, options.n_logprobs),
      answer_(options.stop, observer.on_text),
      strategy_(strategy),
      round_(session.forward, session.cache, sampler_, round_options()),
      reader_(session, options.reuse_prompt, observer.is_cancelled) {}

RoundOptions Generation::round_options() const {
    const SpeculationOptions& speculation = options_.speculation;
    const bool may_be_inexact =
        session_.max_verify_rows() > session_.invariant_rows || !session_.trees_are_exact;
    return {
        .acceptance = {.rule = speculation.acceptance,
                       .assumed_rate = speculation.assume_acceptance >= 0
                                           ? std::optional(speculation.assume_acceptance)
                                           : std::nullopt,
                       .measures_gaps = may_be_inexact},
        .is_end_of_text = [this](Token token) { return tokenizer_.is_end_of_generation(token); },
        .max_rows = session_.max_verify_rows(),
        .keeps_logits = options_.n_logprobs >= 0,
    };
}

Result Generation::run(int n_reused) {
    for (const Token token : session_.history) {
        sampler_.accept(token);
    }
    sampler_.constrain(constraint_.get());
    if (session_.draft_head) {
        session_.draft_head->begin(session_.history);
    }
    strategy_.begin({.prompt = session_.history,
                     .sampling = options_.sampling,
                     .references = options_.references,
                     .prediction = options_.prediction,
                     .is_constrained = constraint_ != nullptr});
    const PassTotals passes_before = session_.forward.pass_totals();
    const auto logits = prefill(n_reused);

    const Stopwatch watch;
    const double compute_before = compute_ms();
    result_.stop = logits ? decode(*logits) : StopReason::cancelled;
    report_timings(watch.elapsed_ms(), compute_ms() - compute_before);

    session_.publish_history();
    answer_.finish();
    result_.text = answer_.text();
    result_.stop_string = answer_.stop_string();
    result_.n_generated = n_generated();
    const PassTotals& passes = session_.forward.pass_totals();
    result_.n_passes = passes.n_passes - passes_before.n_passes;
    result_.n_other_rows = passes.n_other_rows - passes_before.n_other_rows;
    result_.seed = options_.sampling.seed;
    result_.strategy = options_.speculation.strategy;
    report_engine();
    return std::move(result_);
}

std::optional<std::span<const float>> Generation::prefill(int n_reused) {
    const Stopwatch watch;
    const int n_prompt = static_cast<int>(session_.history.size());
    const auto logits = reader_.read(session_.history, [&](int n_rows) {
        if (observer_.on_prefill) {
            observer_.on_prefill(n_rows, n_prompt);
        }
    });
    result_.n_prompt = n_prompt;
    result_.n_prompt_reused = n_reused;
    result_.n_prompt_shared = reader_.n_adopted();
    result_.timings.prefill_ms = watch.elapsed_ms();
    result_.timings.prefill_tokens_per_second =
        1000.0 * (session_.cache.committed() - n_reused - reader_.n_adopted()) /
        result_.timings.prefill_ms;
    return logits;
}

StopReason Generation::decode(std::span<const float> prompt_logits) {
    reservations_when_warm_ = session_.forward.statistics().reservations;
    std::optional<StopReason> stop = check_limits();
    if (!stop) {
        const auto position = static_cast<std::int64_t>(session_.history.size());
        const Token first = sampler_.sample(prompt_logits, position);
        stop = take_token({first, TokenOrigin::plain, prompt_logits});
        if (observer_.on_round) {
            observer_.on_round({.n_tokens = n_generated()});
        }
    }
    while (!stop) {
        stop = is_cancelled() || !reader_.prepare_round() ? StopReason::cancelled : step();
    }
    return *stop;
}

std::optional<StopReason> Generation::step() {
    const Stopwatch propose_watch;
    const Proposal proposal = propose();
    search_ms_ += propose_watch.elapsed_ms();

    const auto outcome = round_.run(session_.history.back(), proposal);
    if (!outcome) {
        return StopReason::cancelled;
    }
    count_bytes(proposal, *outcome);
    if (session_.has_memory()) {
        const int n_before = static_cast<int>(session_.history.size()) - 1;
        learn_round(proposal, *outcome, options_, n_before, session_.notes);
    }
    if (rounds_.n_rounds() == 0) {
        reservations_when_warm_ = session_.forward.statistics().reservations;
    }
    const std::optional<StopReason> stop = take(proposal, *outcome);

    const Stopwatch observe_watch;
    strategy_.observe(*outcome);
    search_ms_ += observe_watch.elapsed_ms();
    return stop;
}

// What the grammar forces is drafted for nothing and nearly always accepted, so it goes before what
// the strategy would draft, unless that is a copy with the same beginning.
Proposal Generation::propose() {
    std::optional<ForcedDraft> forced;
    if (constraint_ != nullptr && strategy_.takes_forced_drafts()) {
        forced.emplace(constraint_->forced(draft_room()));
    }
    const bool is_forced = forced && !forced->is_empty();
    Proposal proposal = strategy_.propose({.history = session_.history,
                                           .n_room = draft_room(),
                                           .elapsed_ms = watch_.elapsed_ms(),
                                           .n_expected = n_left(),
                                           .load = session_.forward.load(),
                                           .forced = is_forced ? &*forced : nullptr});
    const auto* copy = std::get_if<DraftTokens>(&proposal.draft);
    if (is_forced && (copy == nullptr || !forced->is_covered_by(copy->tree->tokens()))) {
        forced_.set_chain(forced->tokens());
        proposal.draft = DraftTokens{.tree = &forced_, .are_forced = true};
    }
    return proposal;
}

std::optional<StopReason> Generation::take(const Proposal& proposal, const RoundOutcome& outcome) {
    const int first_position = static_cast<int>(session_.history.size());
    const int n_generated_before = n_generated();
    const int n_rows = outcome.tree.n_nodes() + 1;
    is_row_invariant_ &= n_rows <= session_.invariant_rows &&
                         (session_.trees_are_exact || lies_in_place(outcome.path));
    std::optional<StopReason> stop;
    std::size_t n_taken = 0;
    while (!stop && n_taken < outcome.emitted.size()) {
        stop = take_token(emitted_token(outcome, n_taken));
        ++n_taken;
    }
    rounds_.add(proposal, outcome, static_cast<int>(n_taken));
    if (!is_row_invariant_ && !outcome.gaps.empty()) {
        rounds_.add_gaps(outcome.gaps.first(n_taken), first_position);
    }
    // Where the text ends inside what was emitted, so do the rows that count.
    const auto n_history = static_cast<int>(session_.history.size());
    session_.cache.truncate(std::min(session_.cache.committed(), n_history));
    if (observer_.on_round) {
        report_round(proposal, outcome, n_generated() - n_generated_before);
    }
    return stop;
}

void Generation::report_round(const Proposal& proposal,
                              const RoundOutcome& outcome,
                              int n_tokens) const {
    const auto* how = std::get_if<DraftWithPlan>(&proposal.draft);
    const std::string plan = how != nullptr ? to_string(*how->plan) : std::string();
    const bool has_draft = !outcome.tree.is_empty();
    observer_.on_round({.source = has_draft ? source_of(proposal) : DraftSource::none,
                        .plan = has_draft ? std::string_view(plan) : std::string_view(),
                        .n_drafted = outcome.tree.max_depth(),
                        .n_accepted = static_cast<int>(outcome.path.size()),
                        .n_tokens = n_tokens});
}

std::optional<StopReason> Generation::take_token(const DecidedToken& decided) {
    const Token token = decided.token;
    if (tokenizer_.is_end_of_generation(token)) {
        return StopReason::eos;
    }
    events_.report(decided, static_cast<int>(session_.history.size()));
    sampler_.accept(token);
    session_.history.push_back(token);
    if (session_.draft_head) {
        session_.draft_head->add(token);
    }
    result_.tokens.push_back(token);
    if (answer_.push(tokenizer_.piece(token))) {
        return StopReason::stop;
    }
    return check_limits();
}

std::optional<StopReason> Generation::check_limits() const {
    if (options_.n_predict >= 0 && n_generated() >= options_.n_predict) {
        return StopReason::length;
    }
    if (static_cast<int>(session_.history.size()) >= session_.engine.config.n_ctx) {
        return StopReason::context;
    }
    return std::nullopt;
}

int Generation::n_left() const {
    const int n_context = session_.engine.config.n_ctx - static_cast<int>(session_.history.size());
    return options_.n_predict < 0 ? n_context
                                  : std::min(n_context, options_.n_predict - n_generated());
}

// A round emits one token more than it drafts at most, and must not exceed the request.
int Generation::draft_room() const {
    return std::min({n_left(), session_.max_verify_rows(), kMaxDraft + 1}) - 1;
}

// The cache is read up to the committed rows; that a round adds a few is beside the point.
void Generation::count_bytes(const Proposal& proposal, const RoundOutcome& outcome) {
    const auto bytes = [&](const ModulePlan& plan) {
        const PlanCost cost =
            plan_cost(session_.engine.cost, plan, session_.cache.committed(), /*n_rows=*/1);
        return static_cast<double>(cost.weight_bytes + cost.cache_bytes);
    };
    bytes_read_ += bytes(session_.whole_model);
    if (const auto* how = std::get_if<DraftWithPlan>(&proposal.draft)) {
        // A guess that became drafts took its rows in the first pass.
        const int n_drafted = outcome.tree.max_depth();
        const int n_passes = std::max(n_drafted - outcome.n_guessed, std::min(n_drafted, 1));
        bytes_read_ += n_passes * bytes(*how->plan);
    }
}

double Generation::compute_ms() const {
    const double of_adapter =
        session_.adapter ? session_.adapter->forward().statistics().compute_ms : 0;
    return session_.forward.statistics().compute_ms + of_adapter;
}

void Generation::report_timings(double decode_ms, double compute_ms) {
    Timings& timings = result_.timings;
    timings.load_ms = session_.engine.load_ms;
    timings.decode_ms = decode_ms;
    timings.compute_ms = compute_ms;
    timings.host_ms = decode_ms - compute_ms;
    timings.draft_ms = rounds_.draft_ms();
    timings.verify_ms = rounds_.verify_ms();
    timings.search_ms = search_ms_;
    timings.other_ms = decode_ms - timings.draft_ms - timings.verify_ms - search_ms_;
    if (rounds_.n_kept() > 0) {
        timings.tokens_per_second = 1000.0 * rounds_.n_kept() / decode_ms;
        timings.bandwidth_gb_per_second = bytes_read_ / decode_ms * 1e-6;
    }
    result_.speculation = rounds_.summary();
    const std::span<const Decision> decisions = strategy_.decisions();
    result_.decisions.assign(decisions.begin(), decisions.end());
    result_.speculation.row_invariant = is_row_invariant_;
    result_.speculation.is_projection = options_.speculation.assume_acceptance >= 0;
}

void Generation::report_engine() {
    const ForwardStatistics& statistics = session_.forward.statistics();
    const Engine::Impl& engine = session_.engine;
    result_.graphs = statistics.graphs;
    result_.cuda_graphs = logged_cuda_graphs();
    result_.allocations_after_warmup = statistics.reservations - reservations_when_warm_;
    result_.memory = {
        .weights_bytes = engine.weights->statistics().total_bytes,
        .cache_bytes = static_cast<std::int64_t>(session_.cache.memory().bytes()),
        .scratch_bytes = static_cast<std::int64_t>(statistics.scratch_bytes),
        .peak_rss_bytes = peak_rss_bytes(),
    };
    if (session_.adapter) {
        const AdapterHead& adapter = *session_.adapter;
        result_.memory.weights_bytes += engine.adapter->n_bytes();
        result_.memory.cache_bytes += static_cast<std::int64_t>(adapter.cache().memory().bytes());
        result_.memory.scratch_bytes +=
            static_cast<std::int64_t>(adapter.forward().statistics().scratch_bytes);
    }
    result_.device = join(engine.config.devices, ",");
    result_.attention_path = std::string(engine.limits().attention);
    result_.repack = engine.weights->statistics().repacked_types;
    result_.products = describe_products(engine);
    result_.cuda_kernels = engine.weights->statistics().cuda_kernels;
}

}  // namespace knap

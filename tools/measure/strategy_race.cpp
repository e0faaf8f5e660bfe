#include "tools/measure/strategy_race.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/text.h"
#include "runtime/engine_impl.h"
#include "tools/measure/bench_row.h"
#include "tools/measure/report/bench_speedup.h"
#include "tools/measure/text_comparison.h"

namespace knap {
namespace {

// Enough tokens to touch every weight and build the usual graphs.
constexpr std::size_t kFirstTokens = 64;
constexpr int kFewTokens = 2;
// Enough tokens for a strategy to draft.
constexpr int kWarmUpTokens = 8;

double decode_ms(const Result& result) {
    return result.timings.decode_ms;
}

bool needs_adapter(const Contender& contender) {
    return std::ranges::any_of(list_strategies(), [&](const StrategyInfo& info) {
        return info.name == contender.speculation.strategy && info.needs_adapter;
    });
}

}  // namespace

StrategyRace::StrategyRace(Engine& engine, RaceOptions options, RaceObserver observer)
    : options_(std::move(options)), observer_(std::move(observer)), session_(impl_of(engine)) {
    forget_strategies();
    if (!options_.peers.empty()) {
        peers_.emplace(engine, options_, observer_.is_cancelled);
    }
}

void StrategyRace::forget_strategies() {
    strategies_.clear();
    strategies_.resize(options_.rules.size());
    for (std::vector<TurnStrategies>& sides : strategies_) {
        sides.resize(options_.contenders.size() + 1);
    }
    if (peers_) {
        peers_->forget_drafts();
    }
}

std::optional<PromptOutcome> StrategyRace::measure(const BenchPrompt& prompt) {
    if (!begin(prompt)) {
        return std::nullopt;
    }
    PromptOutcome outcome{.skipped_because = why_too_short(reference_)};
    for (std::size_t rule = 0; rule < options_.rules.size(); ++rule) {
        if (outcome.skipped_because.empty() && !race(prompt, rule, outcome)) {
            return std::nullopt;
        }
    }
    if (!outcome.skipped_because.empty()) {
        outcome.rows.clear();
    }
    return outcome;
}

// Computes the prompt's rows, and the reference answer that the others are compared with.
bool StrategyRace::begin(const BenchPrompt& prompt) {
    n_answers_ = 0;
    if (options_.fresh_strategies) {
        forget_strategies();
    }
    if (!is_warm_ && !touch_weights(prompt)) {
        return false;
    }
    session_.reset();
    adapter_ms_ = 0;
    if (session_.adapter) {
        // An empty text discards all rows, even those the prompt shares with the previous one.
        session_.adapter->follow({}, session_.forward, session_.cache);
    }
    const auto prefill = generate_afresh(prompt, plain_decoding(), /*n_predict=*/0);
    auto plain =
        prefill ? generate_afresh(prompt, plain_decoding(), options_.n_predict) : std::nullopt;
    if (!plain) {
        return false;
    }
    prefill_ms_ = prefill->timings.prefill_ms;
    reference_ = std::move(*plain);
    if (!peers_ || !why_too_short(reference_).empty()) {
        return true;
    }
    peers_->read_prompt(prompt.tokens);
    return peers_->begin(
        reference_, request_for(prompt, plain_decoding(), options_.n_predict, options_).ignore_eos);
}

// The first passes of a process read the weights from disk; no prompt should be charged for that.
bool StrategyRace::touch_weights(const BenchPrompt& prompt) {
    BenchPrompt beginning{.tokens = prompt.tokens};
    beginning.tokens.resize(std::min(beginning.tokens.size(), kFirstTokens));
    is_warm_ = generate_afresh(beginning, plain_decoding(), kFewTokens).has_value();
    if (peers_) {
        peers_->read_prompt(beginning.tokens);
    }
    return is_warm_;
}

bool StrategyRace::race(const BenchPrompt& prompt, std::size_t rule, PromptOutcome& outcome) {
    std::vector<Side> sides = sides_of(rule);
    if (!warm_up(prompt, std::span(sides).subspan(1))) {
        return false;
    }
    for (int turn = 0; turn < options_.n_turns; ++turn) {
        if (!take_turn(prompt, rule, sides.front(), std::span(sides).subspan(1))) {
            return false;
        }
    }
    outcome.skipped_because = why_unmeasurable(options_.rules[rule], sides);
    if (outcome.skipped_because.empty()) {
        add_rows(prompt, options_.rules[rule], sides, outcome.rows);
    }
    return true;
}

// With the rule `ratio` texts differ from plain decoding's, and from turn to turn.
std::string StrategyRace::why_unmeasurable(const RaceRule& rule, std::span<const Side> sides) {
    for (const Side& side : sides) {
        for (const Result& result : side.results) {
            if (const std::string why = why_too_short(result); !why.empty()) {
                return concat(side.contender.name, " with ", rule.name, ": ", why);
            }
        }
    }
    return {};
}

// Plain decoding first.
std::vector<StrategyRace::Side> StrategyRace::sides_of(std::size_t rule) {
    std::vector<Side> sides;
    for (Contender& contender : sides_with(options_.rules[rule], options_)) {
        TurnStrategies& strategies = strategies_[rule][sides.size()];
        sides.push_back({.contender = std::move(contender), .strategies = &strategies});
    }
    return sides;
}

// Runs a few rounds of each contender with strategies that are thrown away. Afterwards an adapter
// has its rows of the prompt; computing them counts as prefill.
bool StrategyRace::warm_up(const BenchPrompt& prompt, std::span<const Side> sides) {
    const int n_tokens = std::min(kWarmUpTokens, options_.n_predict);
    for (const Side& side : sides) {
        const auto result = generate_afresh(prompt, side.contender.speculation, n_tokens);
        if (!result) {
            return false;
        }
        if (needs_adapter(side.contender)) {
            adapter_ms_ = std::max(adapter_ms_, result->timings.search_ms);
        }
    }
    return true;
}

// Every answer is its own request with the prompt already in the cache, so its time contains no
// prefill.
bool StrategyRace::take_turn(const BenchPrompt& prompt,
                             std::size_t rule,
                             Side& plain,
                             std::span<Side> sides) {
    Side before{.contender = plain.contender, .strategies = plain.strategies};
    if (!answer(prompt, before)) {
        return false;
    }
    for (Side& side : sides) {
        if (!answer(prompt, side)) {
            return false;
        }
        compare(prompt, side);
    }
    for (std::size_t peer = 0; peer < options_.peers.size(); ++peer) {
        if (!peers_->answer(peer, rule)) {
            return false;
        }
        count_answer();
    }
    if (!answer(prompt, plain)) {
        return false;
    }
    const double before_ms = decode_ms(before.results.back());
    const double mean_ms = (before_ms + decode_ms(plain.results.back())) / 2;
    for (Side& side : sides) {
        side.turns.push_back(make_turn(side.results.back(), mean_ms, reference_.n_generated));
    }
    if (peers_) {
        peers_->end_turn(mean_ms);
    }
    plain.turns.push_back(make_turn(plain.results.back(), before_ms, reference_.n_generated));
    return true;
}

bool StrategyRace::answer(const BenchPrompt& prompt, Side& side) {
    auto result =
        generate(prompt, side.contender.speculation, strategy_of_turn(side), options_.n_predict);
    if (!result) {
        return false;
    }
    side.results.push_back(std::move(*result));
    count_answer();
    return true;
}

// The strategy of the turn about to begin.
Strategy& StrategyRace::strategy_of_turn(Side& side) {
    TurnStrategies& strategies = *side.strategies;
    const std::size_t turn = side.results.size();
    if (turn == strategies.size()) {
        strategies.push_back(session_.new_strategy(side.contender.speculation));
    }
    return *strategies[turn];
}

std::optional<Result> StrategyRace::generate_afresh(const BenchPrompt& prompt,
                                                    const SpeculationOptions& how,
                                                    int n_predict) {
    return generate(prompt, how, *session_.new_strategy(how), n_predict);
}

std::optional<Result> StrategyRace::generate(const BenchPrompt& prompt,
                                             const SpeculationOptions& how,
                                             Strategy& strategy,
                                             int n_predict) {
    Result result = session_.generate(prompt.tokens, request_for(prompt, how, n_predict, options_),
                                      {.is_cancelled = observer_.is_cancelled}, strategy);
    if (result.stop == StopReason::cancelled) {
        return std::nullopt;
    }
    return result;
}

void StrategyRace::count_answer() {
    const auto n_sides = static_cast<int>(options_.contenders.size() + 2 + options_.peers.size());
    const int n_all = n_sides * options_.n_turns * static_cast<int>(options_.rules.size());
    ++n_answers_;
    if (observer_.on_progress) {
        observer_.on_progress(static_cast<double>(n_answers_) / n_all);
    }
}

void StrategyRace::compare(const BenchPrompt& prompt, Side& side) const {
    const auto difference = compare_texts(
        reference_, side.results.back(), side.contender.speculation, options_.sampling,
        concat(prompt.data, ": ", prompt.id, ": ", side.contender.name));
    if (!side.first_difference) {
        side.first_difference = difference;
    }
}

double StrategyRace::prefill_ms_of(const Contender& contender) const {
    return prefill_ms_ + (needs_adapter(contender) ? adapter_ms_ : 0);
}

void StrategyRace::add_rows(const BenchPrompt& prompt,
                            const RaceRule& rule,
                            std::span<Side> sides,
                            std::vector<BenchRow>& rows) {
    const std::size_t first = rows.size();
    for (Side& side : sides) {
        rows.push_back(blank_row(prompt, rule.name, prefill_ms_of(side.contender)));
        fill_row(rows.back(), side.contender, side.results, std::move(side.turns));
        rows.back().first_difference = side.first_difference;
    }
    for (std::size_t peer = 0; peer < options_.peers.size(); ++peer) {
        rows.push_back(blank_row(prompt, rule.name, peers_->prefill_ms(peer)));
        peers_->fill(peer, rows.back());
    }
    if (peers_) {
        peers_->forget_turns();
    }
    for (BenchRow& row : std::span(rows).subspan(first)) {
        row.request_speedup = request_speedup_of(row.turns, row.prefill_ms, prefill_ms_);
    }
}

}  // namespace knap

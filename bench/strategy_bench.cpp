// What do strategies gain over plain decoding, on real prompts? On one prefill per prompt, plain
// decoding and every strategy take turns, and plain decoding is its own control. All must write the
// same text.
//
//     strategy_bench MODEL DATA.jsonl[:TASK][@TOKENS]... [--strategies knapspec,lookup/4,...]
//         [--limit N] [--tokens N] [--repeat N] [--context N] [--threads N] [--adapter FILE]
//
// A source is a cell of the table: TOKENS cuts its prompts. Every line is a strategy on a cell:
// geometric mean over the prompts with its 95 % interval. Where a profile of this model and machine
// is saved, `bound` is the speed that it allows on the texts at hand (speed_bound.h) and `share`
// what the strategy reached of that. Cells cut to the same length are summed up together.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "knap/knap.h"

#include "base/error.h"
#include "base/text.h"
#include "bench_main.h"
#include "cells.h"
#include "measure.h"
#include "measure/contenders.h"
#include "measure/prompt_data.h"
#include "measure/prompt_fit.h"
#include "measure/statistics.h"
#include "runtime/known_costs.h"
#include "runtime/session_impl.h"
#include "speed_bound.h"
#include "strategy_summary.h"

namespace knap::bench {
namespace {

struct Settings {
    std::string model;
    std::vector<std::string> sources;
    std::vector<std::string> strategies = {"knapspec"};
    int limit = 6;       // prompts of a cell
    int n_tokens = 192;  // generated
    int n_repeats = 2;   // turns of every strategy on a prompt
    int n_ctx = 8192;
    int n_threads = 0;
    std::string adapter{};
    bool prints_prompts = false;
};

struct Side {
    std::string name;
    SpeculationOptions speculation;
    // Of every prompt:
    std::vector<double> speedups{};
    std::vector<double> shares{};  // of the bound, where it is known
    std::vector<Result> results{};
};

// Nullopt: no profile that fits is saved.
std::optional<SpeedBound> known_bound(const Engine& engine) {
    const CostProfile profile = known_profile(engine.impl());
    return can_fit(profile) ? std::optional<SpeedBound>(CostModel(profile)) : std::nullopt;
}

class Comparison {
  public:
    explicit Comparison(const Settings& settings)
        : settings_(settings),
          engine_({.model_path = settings.model,
                   .adapter_path = settings.adapter,
                   .n_ctx = settings.n_ctx,
                   .n_threads = settings.n_threads}),
          bound_(known_bound(engine_)) {
        for (const std::string& name : settings.strategies) {
            contenders_.push_back({name, parse_contender(name).speculation});
        }
    }

    void print_head() const {
        std::printf("%s, %d threads, %d tokens, greedy, %d turns; times plain decoding\n",
                    engine_.config().model_path.filename().c_str(), engine_.config().n_threads,
                    settings_.n_tokens, settings_.n_repeats);
        if (!bound_) {
            std::printf("no bounds: they need a saved profile (knap profile)\n");
        }
        std::printf("%-28s %2s %6s %8s %-18s %5s %-19s %6s %6s %6s %7s %5s %5s\n", "cell", "n",
                    "prompt", "plain ms", "strategy", "speed", "95 % interval", "accept", "length",
                    "uniq", "search", "bound", "share");
    }

    void run(const Cell& cell) {
        std::vector<Side> sides = contenders_;
        std::vector<double> control;
        std::vector<double> plain_ms;
        std::vector<double> n_prompt;
        std::vector<double> uniq;
        std::vector<double> bounds;
        for (const DataPrompt& prompt : read_prompt_source(cell.source, settings_.limit).prompts) {
            const auto n_fit = static_cast<std::size_t>(settings_.n_ctx - settings_.n_tokens);
            const std::size_t n_max =
                cell.max_tokens > 0 ? std::min(n_fit, cell.max_tokens) : n_fit;
            const std::vector<Token> tokens = fit_prompt(engine_, prompt.text, n_max).tokens;
            const Turn turn = take_turns(prompt, tokens, sides);
            control.push_back(turn.plain_again_ms / turn.plain_ms);
            plain_ms.push_back(turn.plain_ms / std::max(1, turn.n_generated));
            n_prompt.push_back(static_cast<double>(tokens.size()));
            uniq.push_back(turn.uniq);
            if (turn.bound) {
                bounds.push_back(*turn.bound);
            }
        }
        print_line(cell, n_prompt, plain_ms, "plain again", geometric_mean(control));
        std::printf(" %6s %6s %6.2f\n", "", "", median(uniq));
        for (const Side& side : sides) {
            print_line(cell, n_prompt, plain_ms, side.name, geometric_mean(side.speedups));
            const Totals totals = totals_of(side);
            std::printf(" %6.2f %6.2f %6.2f %6.1f%% %5s %5s\n", totals.acceptance, totals.length,
                        median(uniq), 100 * totals.search, two_decimals(mean_of(bounds)).c_str(),
                        two_decimals(mean_of(side.shares)).c_str());
            summary_.add({.strategy = side.name,
                          .max_tokens = cell.max_tokens,
                          .speed = geometric_mean(side.speedups).mean,
                          .acceptance = totals.acceptance,
                          .length = totals.length,
                          .search = totals.search,
                          .share = mean_of(side.shares)});
        }
        std::fflush(stdout);
    }

    void print_summary() const {
        for (const Side& side : contenders_) {
            summary_.print(side.name);
        }
    }

  private:
    struct Turn {
        double plain_ms = 0;  // medians
        double plain_again_ms = 0;
        double uniq = 0;
        int n_generated = 0;
        std::optional<double> bound{};
    };

    Result generate(Session::Impl& session,
                    std::span<const Token> prompt,
                    const SpeculationOptions& how) {
        return generate(session, prompt, how, settings_.n_tokens);
    }
    static Result generate(Session::Impl& session,
                           std::span<const Token> prompt,
                           const SpeculationOptions& how,
                           int n_tokens) {
        return session.generate(prompt, {.n_predict = n_tokens, .speculation = how}, {});
    }

    // Every turn is a request of its own whose prompt is in the cache already: a strategy starts
    // from nothing but what is saved, and has no prefill to take a share of.
    Turn take_turns(const DataPrompt& prompt,
                    std::span<const Token> tokens,
                    std::vector<Side>& sides) {
        Session::Impl session(engine_.impl());
        const Result reference = generate(session, tokens, plain_decoding());
        // A round of each, after which an adapter has its rows of the prompt: that is prefill, too.
        for (const Side& side : sides) {
            generate(session, tokens, side.speculation, /*n_tokens=*/2);
        }
        std::vector<double> plain;
        std::vector<double> again;
        std::vector<std::vector<double>> times(sides.size());
        for (int turn = 0; turn < settings_.n_repeats; ++turn) {
            plain.push_back(generate(session, tokens, plain_decoding()).timings.decode_ms);
            for (std::size_t i = 0; i < sides.size(); ++i) {
                Result result = generate(session, tokens, sides[i].speculation);
                check_text(prompt, sides[i], reference, result);
                times[i].push_back(result.timings.decode_ms);
                if (turn + 1 == settings_.n_repeats) {
                    sides[i].results.push_back(std::move(result));
                }
            }
            again.push_back(generate(session, tokens, plain_decoding()).timings.decode_ms);
        }
        const auto bound = bound_ ? std::optional(bound_->of(session)) : std::nullopt;
        for (std::size_t i = 0; i < sides.size(); ++i) {
            const double both = (median(plain) + median(again)) / 2;
            sides[i].speedups.push_back(both / median(times[i]));
            if (bound) {
                sides[i].shares.push_back(sides[i].speedups.back() / *bound);
            }
            if (settings_.prints_prompts) {
                std::printf("  %-40s %-18s %.3f, bound %s\n", prompt.id.c_str(),
                            sides[i].name.c_str(), sides[i].speedups.back(),
                            two_decimals(bound).c_str());
            }
        }
        return {.plain_ms = median(plain),
                .plain_again_ms = median(again),
                .uniq = distinct_trigrams(reference.tokens),
                .n_generated = reference.n_generated,
                .bound = bound};
    }

    // Where rounding depends on the rows of a pass, the text may part from plain decoding's at a
    // near-tie; elsewhere it may not at all.
    static void check_text(const DataPrompt& prompt,
                           const Side& side,
                           const Result& plain,
                           const Result& result) {
        if (result.speculation.row_invariant && result.tokens != plain.tokens) {
            const auto [found, expected] = std::mismatch(result.tokens.begin(), result.tokens.end(),
                                                         plain.tokens.begin(), plain.tokens.end());
            fail(prompt.id, ": expected the text of plain decoding from ", side.name,
                 ", found another token at ", found - result.tokens.begin());
        }
    }

    static void print_line(const Cell& cell,
                           const std::vector<double>& n_prompt,
                           const std::vector<double>& plain_ms,
                           const std::string& name,
                           const Interval& speed) {
        std::printf("%-28s %2zu %6.0f %8.2f %-18s %5.3f [%.3f, %.3f]  ", cell.name.c_str(),
                    n_prompt.size(), median(n_prompt), median(plain_ms), name.c_str(), speed.mean,
                    speed.low, speed.high);
    }

    // Over all prompts of a cell.
    struct Totals {
        double acceptance = 0;
        double length = 0;
        double search = 0;
    };
    static Totals totals_of(const Side& side) {
        double drafted = 0;
        double accepted = 0;
        double tokens = 0;
        double rounds = 0;
        double search = 0;
        double time = 0;
        for (const Result& result : side.results) {
            drafted += result.speculation.n_drafted;
            accepted += result.speculation.n_accepted;
            tokens += result.n_generated;
            rounds += result.speculation.rounds;
            search += result.timings.search_ms;
            time += result.timings.prefill_ms + result.timings.decode_ms;
        }
        return {.acceptance = drafted > 0 ? accepted / drafted : 0,
                .length = rounds > 0 ? tokens / rounds : 0,
                .search = search / time};
    }

    Settings settings_;
    Engine engine_;
    std::optional<SpeedBound> bound_;
    std::vector<Side> contenders_;
    StrategySummary summary_;
};

void run(const Settings& settings) {
    if (settings.n_tokens >= settings.n_ctx) {
        fail("--tokens: expected fewer than the context's ", settings.n_ctx, ", found ",
             settings.n_tokens);
    }
    Comparison comparison(settings);
    comparison.print_head();
    for (const std::string& source : settings.sources) {
        comparison.run(parse_cell(source));
    }
    comparison.print_summary();
}

}  // namespace
}  // namespace knap::bench

int main(int argc, char** argv) {
    knap::bench::Settings settings;
    CLI::App app("Speed of strategies on real prompts", "strategy_bench");
    app.add_option("MODEL", settings.model)->required();
    app.add_option("DATA.jsonl[:TASK][@TOKENS]", settings.sources)->required();
    app.add_option("--strategies", settings.strategies, "STRATEGY[/DRAFT_MAX[/PLAN]],...")
        ->delimiter(',');
    app.add_option("--limit", settings.limit, "prompts of a cell")->check(CLI::PositiveNumber);
    app.add_option("--tokens", settings.n_tokens, "tokens generated")->check(CLI::PositiveNumber);
    app.add_option("--repeat", settings.n_repeats, "turns")->check(CLI::PositiveNumber);
    app.add_option("--context", settings.n_ctx, "tokens of context")->check(CLI::PositiveNumber);
    app.add_option("--threads", settings.n_threads, "threads; 0: the physical cores");
    app.add_option("--adapter", settings.adapter, "adapter of kangaroo");
    app.add_flag("--prompts", settings.prints_prompts, "print every prompt");
    CLI11_PARSE(app, argc, argv);
    return knap::bench::bench_main("strategy_bench", [&] { knap::bench::run(settings); });
}

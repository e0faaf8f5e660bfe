// How much faster than plain decoding are strategies on real prompts? After one prefill per prompt,
// plain decoding and every strategy take turns. Plain decoding runs twice, as a control. All must
// write the same text.
//
//     strategy_bench MODEL DATA.jsonl[:TASK][@TOKENS]... [--strategies knapspec,lookup/4,...]
//         [--limit N] [--tokens N] [--repeat N] [--context N] [--threads N] [--adapter FILE]
//         [--fresh-strategies]
//
// A source is a cell of the table; TOKENS cuts its prompts. Every line is a strategy on a cell: the
// geometric mean over the prompts with its 95 % interval, and the mean speed of whole requests,
// prompt included. If a profile of this model and machine is saved, `bound` is the speed that it
// allows on these texts (speed_bound.h), and `share` is the part of it that the strategy reached.
// Cells cut to the same length are summarised together.
// Strategies keep what they have learned from prompt to prompt and from cell to cell, unless
// --fresh-strategies makes new ones for every prompt.
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
#include "runtime/files/known_costs.h"
#include "runtime/session_impl.h"
#include "speed_bound.h"
#include "strategy_summary.h"
#include "tools/measure/contenders.h"
#include "tools/measure/prompt_data.h"
#include "tools/measure/prompt_fit.h"
#include "tools/measure/statistics.h"
#include "tools/measure/strategy_race.h"

namespace knap::bench {
namespace {

struct Settings {
    std::string model;
    std::vector<std::string> sources;
    std::vector<std::string> strategies = {"knapspec"};
    int limit = 6;       // prompts per cell
    int n_tokens = 192;  // generated
    int n_repeats = 2;   // turns per strategy and prompt
    int n_ctx = 8192;
    int n_threads = 0;
    std::string adapter{};
    bool fresh_strategies = false;
    bool prints_prompts = false;
};

// A strategy on the prompts of a cell.
struct Side {
    std::string name;
    std::vector<double> speedups{};
    std::vector<double> requests{};  // speedups of whole requests
    std::vector<double> shares{};    // of the bound, if known
    std::vector<BenchRow> rows{};
};

// Returns nullopt when no matching profile is saved.
std::optional<SpeedBound> known_bound(const Engine& engine) {
    const CostProfile profile = known_profile(impl_of(engine));
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
          bound_(known_bound(engine_)),
          race_(engine_, race_options(settings), {}) {}

    void print_head() const {
        std::printf(
            "%s, %d threads, %d tokens, greedy, %d turns%s; speed relative to plain decoding\n",
            engine_.config().model_path.filename().c_str(), engine_.config().n_threads,
            settings_.n_tokens, settings_.n_repeats,
            settings_.fresh_strategies ? ", new strategies for every prompt" : "");
        if (!bound_) {
            std::printf("no bounds, which need a saved profile (knap profile)\n");
        }
        std::printf("%-28s %2s %6s %8s %-18s %5s %-16s %7s %6s %6s %6s %7s %5s %5s\n", "cell", "n",
                    "prompt", "plain ms", "strategy", "speed", "95 % interval", "request", "accept",
                    "length", "uniq", "search", "bound", "share");
    }

    void run(const Cell& cell) {
        std::vector<Side> sides = sides_of(settings_);
        std::vector<double> control;
        std::vector<double> control_requests;
        std::vector<double> plain_ms;
        std::vector<double> n_prompt;
        std::vector<double> uniq;
        std::vector<double> bounds;
        for (const DataPrompt& prompt : read_prompt_source(cell.source, settings_.limit).prompts) {
            const std::vector<BenchRow> rows = measure(cell, prompt);
            const std::optional<double> bound = bound_of_answer();
            control.push_back(rows.front().speedup.mean);
            control_requests.push_back(rows.front().request_speedup.mean);
            plain_ms.push_back(1e3 / rows.front().tokens_per_second);
            n_prompt.push_back(rows.front().n_prompt);
            uniq.push_back(rows.front().distinct_trigrams);
            if (bound) {
                bounds.push_back(*bound);
            }
            for (std::size_t i = 0; i < sides.size(); ++i) {
                add_row(sides[i], rows[i + 1], bound);
            }
        }
        print_line(cell, n_prompt, plain_ms, "plain again", geometric_mean(control),
                   control_requests);
        std::printf(" %6s %6s %6.2f\n", "", "", median(uniq));
        for (const Side& side : sides) {
            print_line(cell, n_prompt, plain_ms, side.name, geometric_mean(side.speedups),
                       side.requests);
            const Totals totals = totals_of(side);
            std::printf(" %6.2f %6.2f %6.2f %6.1f%% %5s %5s\n", totals.acceptance, totals.length,
                        median(uniq), 100 * totals.search, two_decimals(mean_of(bounds)).c_str(),
                        two_decimals(mean_of(side.shares)).c_str());
            summary_.add({.strategy = side.name,
                          .max_tokens = cell.max_tokens,
                          .speed = geometric_mean(side.speedups).mean,
                          .request = geometric_mean(side.requests).mean,
                          .acceptance = totals.acceptance,
                          .length = totals.length,
                          .search = totals.search,
                          .share = mean_of(side.shares)});
        }
        std::fflush(stdout);
    }

    void print_summary() const {
        for (const std::string& name : settings_.strategies) {
            summary_.print(name);
        }
    }

  private:
    static RaceOptions race_options(const Settings& settings) {
        RaceOptions options{.n_predict = settings.n_tokens,
                            .n_turns = settings.n_repeats,
                            .fresh_strategies = settings.fresh_strategies};
        for (const std::string& name : settings.strategies) {
            options.contenders.push_back(parse_contender(name));
        }
        return options;
    }

    static std::vector<Side> sides_of(const Settings& settings) {
        std::vector<Side> sides;
        for (const std::string& name : settings.strategies) {
            sides.push_back({.name = name});
        }
        return sides;
    }

    // The row of plain decoding, and one for each strategy.
    std::vector<BenchRow> measure(const Cell& cell, const DataPrompt& prompt) {
        const auto n_fit = static_cast<std::size_t>(settings_.n_ctx - settings_.n_tokens);
        const std::size_t n_max = cell.max_tokens > 0 ? std::min(n_fit, cell.max_tokens) : n_fit;
        FittedPrompt fitted = fit_prompt(engine_, prompt.text, n_max);
        const auto outcome = race_.measure({.data = cell.name,
                                            .id = prompt.id,
                                            .task = prompt.task,
                                            .tokens = std::move(fitted.tokens),
                                            .n_document_tokens = fitted.n_document_tokens});
        if (outcome->rows.empty()) {
            fail(prompt.id, ": ", outcome->skipped_because);
        }
        return outcome->rows;
    }

    // Returns nullopt without a profile.
    std::optional<double> bound_of_answer() {
        if (!bound_) {
            return std::nullopt;
        }
        return bound_->of(race_.session());
    }

    void add_row(Side& side, const BenchRow& row, const std::optional<double>& bound) const {
        side.rows.push_back(row);
        side.speedups.push_back(row.speedup.mean);
        side.requests.push_back(row.request_speedup.mean);
        if (bound) {
            side.shares.push_back(row.speedup.mean / *bound);
        }
        if (settings_.prints_prompts) {
            std::printf("  %-40s %-18s %.3f, bound %s\n", row.id.c_str(), side.name.c_str(),
                        row.speedup.mean, two_decimals(bound).c_str());
        }
    }

    static void print_line(const Cell& cell,
                           const std::vector<double>& n_prompt,
                           const std::vector<double>& plain_ms,
                           const std::string& name,
                           const Interval& speed,
                           const std::vector<double>& requests) {
        std::printf("%-28s %2zu %6.0f %8.2f %-18s %5.3f [%.3f, %.3f]   %7.3f", cell.name.c_str(),
                    n_prompt.size(), median(n_prompt), median(plain_ms), name.c_str(), speed.mean,
                    speed.low, speed.high, geometric_mean(requests).mean);
    }

    // Totals over all prompts of a cell.
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
        for (const BenchRow& row : side.rows) {
            drafted += row.n_drafted;
            accepted += row.n_accepted;
            tokens += row.turns.back().n_generated;
            rounds += row.rounds;
            search += row.turns.back().search_ms;
            time += row.turns.back().decode_ms;
        }
        return {.acceptance = drafted > 0 ? accepted / drafted : 0,
                .length = rounds > 0 ? tokens / rounds : 0,
                .search = search / time};
    }

    Settings settings_;
    Engine engine_;
    std::optional<SpeedBound> bound_;
    StrategyRace race_;
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
    app.add_option("--limit", settings.limit, "prompts per cell")->check(CLI::PositiveNumber);
    app.add_option("--tokens", settings.n_tokens, "tokens to generate")->check(CLI::PositiveNumber);
    app.add_option("--repeat", settings.n_repeats, "turns per strategy")
        ->check(CLI::PositiveNumber);
    app.add_option("--context", settings.n_ctx, "context size in tokens")
        ->check(CLI::PositiveNumber);
    app.add_option("--threads", settings.n_threads, "number of threads; 0: the physical cores");
    app.add_option("--adapter", settings.adapter, "adapter for kangaroo");
    app.add_flag("--fresh-strategies", settings.fresh_strategies,
                 "start every prompt with new strategies");
    app.add_flag("--prompts", settings.prints_prompts, "print a line per prompt");
    CLI11_PARSE(app, argc, argv);
    return knap::bench::bench_main("strategy_bench", [&] { knap::bench::run(settings); });
}

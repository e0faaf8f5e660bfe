// What do lookup and windowed drafting gain over plain decoding, on real prompts? Every strategy
// continues every prompt greedily; all must write the same text. Plain decoding runs first and
// last: what those two differ by is noise.
//
//     lookup_bench MODEL DATA.jsonl[:TASK]... [--limit N] [--tokens N] [--context N] [--threads N]
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "knap/knap.h"

#include "base/error.h"
#include "base/text.h"
#include "bench_main.h"
#include "measure.h"
#include "prompts.h"

namespace knap::bench {
namespace {

struct Settings {
    std::string model;
    std::vector<std::string> sources;
    std::size_t limit = 4;  // prompts of a file
    int n_tokens = 96;      // generated
    int n_ctx = 4096;
    int n_threads = 0;
};

struct Contender {
    std::string name;
    SpeculationOptions speculation;
    // Of every prompt:
    std::vector<double> speedups{};
    std::vector<SpeculationStatistics> statistics{};
};

std::vector<Contender> contenders() {
    std::vector<Contender> list;
    for (const int length : {4, 6, 10}) {
        list.push_back({concat("lookup ", length), {.strategy = "lookup", .draft_max = length}});
    }
    for (const int length : {4, 6}) {
        list.push_back({concat("window ", length),
                        {.strategy = "static", .draft_max = length, .draft_plan = "a=w16+256"}});
    }
    return list;
}

class Comparison {
  public:
    explicit Comparison(const Settings& settings)
        : settings_(settings),
          engine_({.model_path = settings.model,
                   .n_ctx = settings.n_ctx,
                   .n_threads = settings.n_threads}),
          session_(engine_) {}

    void print_head() const {
        std::printf(
            "%s, %d threads, context %d, %d tokens, greedy; speed / speed of plain decoding\n",
            engine_.config().model_path.filename().c_str(), engine_.config().n_threads,
            settings_.n_ctx, settings_.n_tokens);
    }

    void run_file(const std::string& source) {
        const std::vector<DataPrompt> prompts = read_prompts(source, settings_.limit);
        std::vector<Contender> sides = contenders();
        std::printf("%-30s %6s %5s %9s %6s |", std::filesystem::path(source).filename().c_str(),
                    "prompt", "new", "plain ms", "again");
        for (const Contender& side : sides) {
            std::printf(" %9s", side.name.c_str());
        }
        std::printf("\n");
        for (const DataPrompt& prompt : prompts) {
            run_prompt(prompt, sides);
        }
        print_summary(sides);
    }

  private:
    Result generate(std::span<const Token> prompt, const SpeculationOptions& speculation, int n) {
        GenerateOptions options;
        options.n_predict = n;
        options.speculation = speculation;
        return session_.generate(prompt, options);
    }

    void run_prompt(const DataPrompt& prompt, std::vector<Contender>& sides) {
        const auto n_max = static_cast<std::size_t>(settings_.n_ctx - settings_.n_tokens);
        const std::vector<Token> tokens = fit_prompt(engine_, prompt.text, n_max);
        generate(tokens, {}, 1);  // the prompt's rows, which every run below finds in the cache

        const Result plain = generate(tokens, {}, settings_.n_tokens);
        std::vector<Result> results;
        for (const Contender& side : sides) {
            results.push_back(generate(tokens, side.speculation, settings_.n_tokens));
            check_text(prompt, side, plain, results.back());
        }
        const Result again = generate(tokens, {}, settings_.n_tokens);

        const double plain_ms = (plain.timings.decode_ms + again.timings.decode_ms) / 2;
        std::printf("%-30s %6d %5d %9.2f %6.2f |", prompt.id.c_str(), plain.n_prompt,
                    plain.n_generated, plain_ms / plain.n_generated,
                    plain.timings.decode_ms / again.timings.decode_ms);
        for (std::size_t i = 0; i < sides.size(); ++i) {
            sides[i].speedups.push_back(plain_ms / results[i].timings.decode_ms);
            sides[i].statistics.push_back(results[i].speculation);
            std::printf(" %8.2fx", sides[i].speedups.back());
        }
        std::printf("\n");
        std::fflush(stdout);
    }

    // Where rounding depends on the rows of a pass, the text may part from plain decoding's at a
    // near-tie; elsewhere it may not at all.
    static void check_text(const DataPrompt& prompt,
                           const Contender& side,
                           const Result& plain,
                           const Result& result) {
        if (result.speculation.row_invariant && result.tokens != plain.tokens) {
            const auto [found, expected] = std::mismatch(result.tokens.begin(), result.tokens.end(),
                                                         plain.tokens.begin(), plain.tokens.end());
            fail(prompt.id, ": expected the text of plain decoding from ", side.name,
                 ", found another token at ", found - result.tokens.begin());
        }
    }

    static void print_summary(const std::vector<Contender>& sides) {
        const auto print_line = [&](const char* name, const char* unit, auto value) {
            std::printf("%-60s |", name);
            for (const Contender& side : sides) {
                std::printf(" %8.2f%s", value(side), unit);
            }
            std::printf("\n");
        };
        const auto mean = [](const Contender& side, auto member) {
            double sum = 0;
            for (const SpeculationStatistics& statistics : side.statistics) {
                sum += statistics.*member;
            }
            return sum / static_cast<double>(side.statistics.size());
        };
        print_line("median", "x", [](const Contender& side) { return median(side.speedups); });
        print_line("accepted of drafted", " ", [&](const Contender& side) {
            return mean(side, &SpeculationStatistics::acceptance_rate);
        });
        print_line("tokens per round", " ", [&](const Contender& side) {
            return mean(side, &SpeculationStatistics::mean_accepted_length);
        });
    }

    Settings settings_;
    Engine engine_;
    Session session_;
};

void run(const Settings& settings) {
    if (settings.n_tokens >= settings.n_ctx) {
        fail("--tokens: expected fewer than the context's ", settings.n_ctx, ", found ",
             settings.n_tokens);
    }
    Comparison comparison(settings);
    comparison.print_head();
    for (const std::string& source : settings.sources) {
        comparison.run_file(source);
    }
}

}  // namespace
}  // namespace knap::bench

int main(int argc, char** argv) {
    knap::bench::Settings settings;
    CLI::App app("Speed of lookup and windowed drafting on real prompts", "lookup_bench");
    app.add_option("MODEL", settings.model)->required();
    app.add_option("DATA.jsonl[:TASK]", settings.sources)->required();
    app.add_option("--limit", settings.limit, "prompts of a file")->check(CLI::PositiveNumber);
    app.add_option("--tokens", settings.n_tokens, "tokens generated")->check(CLI::PositiveNumber);
    app.add_option("--context", settings.n_ctx, "tokens of context")->check(CLI::PositiveNumber);
    app.add_option("--threads", settings.n_threads, "threads; 0: the physical cores");
    CLI11_PARSE(app, argc, argv);
    return knap::bench::bench_main("lookup_bench", [&] { knap::bench::run(settings); });
}

// How much of decoding is spent outside the backend, by strategy, and where? The first table times
// whole requests after a context of about a thousand tokens, the second the parts of a round.
// "around passes" is finding graphs, filling inputs and choosing drafts; "the rest" is acceptance
// and text.
//
//     round_bench MODEL [THREADS]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "knap/knap.h"

#include "base/text.h"
#include "bench_main.h"
#include "measure.h"
#include "model_rig.h"
#include "sampling/draft_sampler.h"
#include "sampling/sampler.h"
#include "search/row_numbers.h"

namespace knap::bench {
namespace {

constexpr int kPromptTokens = 1000;
constexpr int kGenerated = 64;
constexpr int kRounds = 5;
constexpr int kDraftLength = 6;
constexpr int kPartRounds = 101;
const SamplingOptions kGreedy;
const SamplingOptions kSampled{.temperature = 0.8f, .seed = 1};

// --- whole requests ---

struct Contender {
    std::string name{};
    GenerateOptions options{};
    std::vector<Result> results{};
};

std::vector<Contender> contenders() {
    const SpeculationOptions plain = plain_decoding();
    const SpeculationOptions window{
        .strategy = "static", .draft_max = kDraftLength, .settings = {{"plan", "a=w16+256"}}};
    SpeculationOptions exits = window;
    exits.settings["exit-confidence"] = "0.5";
    const SpeculationOptions lookup{.strategy = "lookup"};
    std::vector<Contender> list;
    const auto add = [&](const char* name, const SpeculationOptions& speculation,
                         const SamplingOptions& sampling) {
        Contender& side = list.emplace_back();
        side.name = name;
        side.options.n_predict = kGenerated;
        side.options.speculation = speculation;
        side.options.sampling = sampling;
    };
    add("plain", plain, kGreedy);
    add("plain, sampled", plain, kSampled);
    add("static", window, kGreedy);
    add("static, exit confidence 0.5", exits, kGreedy);
    add("static, sampled", window, kSampled);
    add("lookup", lookup, kGreedy);
    add("lookup, sampled", lookup, kSampled);
    return list;
}

// Text that partly repeats itself, so that drafts are sometimes right.
std::vector<Token> prompt_tokens(const Engine& engine) {
    std::string text;
    std::vector<Token> tokens;
    for (int day = 1; tokens.size() < kPromptTokens; ++day) {
        text += concat("Day ", day, ". The knapper turns the core, looks for an edge and strikes ",
                       3 + day * day % 11, " times. ",
                       day % 3 == 0 ? "A long flake comes off. " : "The stone holds. ");
        tokens = engine.tokenize(text);
    }
    return tokens;
}

template <typename Value>
double median_of(const std::vector<Result>& results, Value value) {
    std::vector<double> values;
    std::transform(results.begin(), results.end(), std::back_inserter(values), value);
    return median(values);
}

void report(const Contender& contender) {
    // The median share of decoding time, in per cent.
    const auto share = [&](auto part_ms) {
        return median_of(contender.results, [&](const Result& result) {
            return 100 * part_ms(result.timings) / result.timings.decode_ms;
        });
    };
    const SpeculationStatistics& speculation = contender.results.back().speculation;
    std::printf("%-28s %7.2f%% | %14.2f%% %8.2f%% %8.2f%% | %6d %8.2f %9.2f\n",
                contender.name.c_str(), share([](const Timings& t) { return t.host_ms; }),
                share([](const Timings& t) { return t.draft_ms + t.verify_ms - t.compute_ms; }),
                share([](const Timings& t) { return t.search_ms; }),
                share([](const Timings& t) { return t.other_ms; }), speculation.rounds,
                speculation.acceptance_rate, median_of(contender.results, [](const Result& result) {
                    return result.timings.decode_ms / result.n_generated;
                }));
}

void time_requests(const char* path, int n_threads) {
    Engine engine({.model_path = path, .n_ctx = 2048, .n_threads = n_threads});
    Session session(engine);
    const std::vector<Token> prompt = prompt_tokens(engine);
    std::vector<Contender> sides = contenders();
    for (int round = 0; round <= kRounds; ++round) {
        for (Contender& side : sides) {
            session.forget_strategies();
            Result result = session.generate(prompt, side.options);
            // The first round builds graphs.
            if (round > 0) {
                side.results.push_back(std::move(result));
            }
        }
    }
    std::printf(
        "%s, %d threads, %zu tokens of context; share of decoding outside the backend "
        "(below 2%%), medians of %d\n",
        engine.config().model_path.filename().c_str(), engine.config().n_threads, prompt.size(),
        kRounds);
    std::printf("%-28s %8s | %15s %9s %9s | %6s %8s %9s\n", "", "in all", "around passes",
                "strategy", "the rest", "rounds", "accepted", "ms/token");
    for (const Contender& side : sides) {
        report(side);
    }
}

// --- parts of a round ---

// Microseconds that a pass of `n_rows` rows takes outside the backend.
double pass_host_us(ModelRig& rig, int n_rows) {
    const std::vector<Token> tokens = random_tokens(n_rows, rig.config.n_vocab);
    const std::vector<int> rows = row_numbers(n_rows);
    std::vector<double> times_us;
    for (int round = 0; round < kPartRounds; ++round) {
        const double compute_before_ms = rig.forward.statistics().compute_ms;
        const Stopwatch watch;
        rig.forward.run({.tokens = tokens, .first_row = rig.cache.committed(), .logit_rows = rows});
        const double pass_ms = watch.elapsed_ms();
        const double compute_ms = rig.forward.statistics().compute_ms - compute_before_ms;
        times_us.push_back(1000 * (pass_ms - compute_ms));
    }
    return median(times_us);
}

void time_parts(const char* path, int n_threads) {
    Backend backend(n_threads);
    ModelRig rig(path, backend, Kernels::automatic);
    rig.fill(kPromptTokens);
    std::printf("host time of the parts of a round, microseconds\n");
    std::printf("%-28s %8.1f\n", "pass of one row", pass_host_us(rig, 1));
    std::printf("%-28s %8.1f\n", concat("pass of ", kDraftLength + 1, " rows").c_str(),
                pass_host_us(rig, kDraftLength + 1));

    rig.cache.truncate(kPromptTokens - 1);
    const auto row =
        advance(rig.forward, rig.cache, random_tokens(kPromptTokens, rig.config.n_vocab));
    const std::vector<float> logits(row->begin(), row->end());
    Sampler greedy(kGreedy, rig.config.n_vocab, kContext);
    Sampler sampled(kSampled, rig.config.n_vocab, kContext);
    DraftSampler drafting(sampled, AcceptanceRule::shared_noise);
    std::vector<Contestant> parts{
        {"greedy choice", [&] { greedy.sample(logits, kPromptTokens); }},
        {"sampled choice", [&] { sampled.sample(logits, kPromptTokens); }},
        {"sampled draft choice", [&] { drafting.choose(logits, kPromptTokens, 1); }},
        {"confidence", [&] { confidence(logits, 0); }},
    };
    alternate(parts, kPartRounds);
    for (const Contestant& part : parts) {
        std::printf("%-28s %8.1f\n", part.name.c_str(), 1000 * median(part.times_ms));
    }
}

void run(const char* path, int n_threads) {
    time_requests(path, n_threads);
    time_parts(path, n_threads);
}

}  // namespace
}  // namespace knap::bench

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fprintf(stderr, "usage: round_bench MODEL [THREADS]\n");
        return 2;
    }
    return knap::bench::bench_main(
        "round_bench", [&] { knap::bench::run(argv[1], argc > 2 ? std::atoi(argv[2]) : 0); });
}

// What does serving several conversations at once cost and gain? In one process, on the same
// prompts, ours and libllama's with its better setting take turns.
//
//     batch_bench [QUESTION...] [-m MODEL] [-t N] [--prompts FILE.jsonl[:TASK]|built-in|random]
//                 [--lengths A..B] [-n N] [--sessions N,...] [--strategies NAME,...] [--repeat N]
//                 [--json FILE]
//
// Questions; all of them by default:
//     throughput   tokens per second of N conversations that start at once
//     prefix       time until 8 conversations that begin alike have their first token
//     arrival      the gap that a long prompt causes in running conversations
//     direct       what the scheduler costs a session that is alone
//     memory       what an idle session takes
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/text.h"
#include "bench/batch/arrival.h"
#include "bench/batch/direct.h"
#include "bench/batch/memory.h"
#include "bench/batch/prefix.h"
#include "bench/batch/throughput.h"
#include "bench/bench_json.h"
#include "bench/bench_main.h"
#include "cli/environment.h"
#include "tools/measure/bench_context.h"

namespace knap::bench {
namespace {

// Reads "200..400".
void parse_lengths(const std::string& text, BatchSettings& settings) {
    const std::size_t dots = text.find("..");
    try {
        settings.shortest = std::stoi(text);
        settings.longest =
            dots == std::string::npos ? settings.shortest : std::stoi(text.substr(dots + 2));
    } catch (const std::exception&) {
        settings.shortest = 0;
    }
    if (settings.shortest < 1 || settings.longest < settings.shortest) {
        throw CLI::ValidationError("--lengths", concat("expected A..B, found '", text, "'"));
    }
}

void run(BatchSettings settings, BenchJson json) {
    if (settings.model.empty()) {
        settings.model = find_default_model(read_environment());
    }
    std::ranges::sort(settings.n_sessions);
    BatchRig rig(settings);
    const Engine& engine = rig.load(context_for(settings.longest), 1);
    json.add_model(settings.model, impl_of(engine).model, rig.backend());
    BatchPrompts prompts(engine, settings);
    const BenchHost host = describe_host();
    std::printf("%s, %d threads, %s, %s; prompts: %s, %d to %d tokens\n",
                settings.model.filename().c_str(), rig.n_threads(), host.cpu.c_str(),
                host.isa.c_str(), settings.prompts.c_str(), settings.shortest, settings.longest);
    const std::map<std::string, std::function<void()>> questions{
        {"throughput", [&] { Throughput(rig, prompts, settings).run(json); }},
        {"prefix", [&] { measure_prefix(rig, prompts, settings, json); }},
        {"arrival", [&] { Arrival(rig, prompts, settings).run(json); }},
        {"direct", [&] { measure_direct(rig, prompts, settings, json); }},
        {"memory", [&] {
             for (const std::string& strategy : settings.strategies) {
                 measure_memory(rig, prompts, settings, strategy, json);
                 rig.unload();
             }
         }}};
    for (const std::string& question : settings.questions) {
        questions.at(question)();
        rig.unload();
    }
}

}  // namespace
}  // namespace knap::bench

int main(int argc, char** argv) {
    knap::bench::BatchSettings settings;
    std::string json;
    CLI::App app("Several conversations at once, compared with libllama", "batch_bench");
    app.add_option("QUESTION", settings.questions)
        ->check(CLI::IsMember({"throughput", "prefix", "arrival", "direct", "memory"}));
    app.add_option("-m,--model", settings.model, "model file; the default model if not given");
    app.add_option("-t,--threads", settings.n_threads, "number of threads; 0: the physical cores");
    app.add_option("--prompts", settings.prompts, "FILE.jsonl[:TASK], built-in or random");
    app.add_option_function<std::string>(
        "--lengths", [&](const std::string& text) { knap::bench::parse_lengths(text, settings); },
        "shortest and longest prompt in tokens, A..B");
    app.add_option("-n,--predict", settings.n_predict, "tokens of an answer")
        ->check(CLI::Range(2, 1 << 20));
    app.add_option("--sessions", settings.n_sessions, "numbers of conversations for `throughput`")
        ->delimiter(',')
        ->check(CLI::Range(1, knap::kMaxParallel));
    app.add_option("--strategies", settings.strategies, "our strategies")->delimiter(',');
    app.add_option("-r,--repeat", settings.n_repeats, "repetitions")->check(CLI::PositiveNumber);
    app.add_option("--prefix-tokens", settings.n_prefix, "tokens in common, for `prefix`")
        ->check(CLI::PositiveNumber);
    app.add_option("--newcomer-tokens", settings.n_newcomer, "prompt that arrives, for `arrival`")
        ->check(CLI::PositiveNumber);
    app.add_option("--json", json, "file to write every time to");
    CLI11_PARSE(app, argc, argv);
    return knap::bench::bench_main("batch_bench", [&] {
        knap::bench::run(settings, {json, argc, argv});
    });
}

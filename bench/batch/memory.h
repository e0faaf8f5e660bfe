// How much memory does a session need that is open and idle, and one that has answered a request?
#pragma once

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "base/rounding.h"
#include "bench/batch/prompts.h"
#include "bench/batch/rig.h"
#include "bench/batch/settings.h"
#include "bench/bench_json.h"

namespace knap::bench {

// Resident memory of this process that is its own: weights that are mapped from the file become
// resident with the tokens of a text, whoever reads them.
inline double resident_mib() {
    std::ifstream file("/proc/self/status");
    std::string word;
    while (file >> word && word != "RssAnon:") {
    }
    double n_kib = 0;
    file >> n_kib;
    return n_kib / 1024;
}

// Idle sessions after a request each of `strategy`, beside the pages of the cache that they hold.
inline void measure_memory(BatchRig& rig,
                           BatchPrompts& prompts,
                           const BatchSettings& settings,
                           const std::string& strategy,
                           BenchJson& json) {
    constexpr int kSessions = 8;
    constexpr int kFewTokens = 16;
    const int n_ctx = context_for(settings.longest + kFewTokens);
    Engine& engine = rig.load(n_ctx, kSessions + 1);
    // What the first session of an engine sets up for all is not the others'.
    std::vector<Session> first = open_sessions(engine, 1);
    warm_up(first, prompts);
    const double before = resident_mib();
    std::vector<Session> sessions = open_sessions(engine, kSessions);
    const double open = resident_mib();
    const int n_rows =
        round_up(settings.shortest + kFewTokens, impl_of(engine).pipeline().memory().page_rows());
    for (Session& session : sessions) {
        const Prompt prompt = prompts.random(settings.shortest);
        session.generate(prompt, options_of(strategy, kFewTokens));
    }
    const double idle = (open - before) / kSessions;
    const double used = (resident_mib() - before) / kSessions;
    const double pages =
        n_rows * static_cast<double>(engine.info().cache_bytes_per_token) / (1 << 20);
    std::printf(
        "\nMemory of a session (%s), with a context of %d tokens: %.2f MiB before its first "
        "request, %.2f MiB after one of %d + %d tokens beside %.2f MiB of pages (means of %d "
        "sessions)\n",
        strategy.c_str(), n_ctx, idle, used - pages, settings.shortest, kFewTokens, pages,
        kSessions);
    std::fflush(stdout);
    json.add_row({{"question", "memory"},
                  {"strategy", strategy},
                  {"sessions", kSessions},
                  {"context", n_ctx},
                  {"idle_mib", idle},
                  {"used_mib", used},
                  {"pages_mib", pages}},
                 {}, settings.shortest + kFewTokens);
}

}  // namespace knap::bench

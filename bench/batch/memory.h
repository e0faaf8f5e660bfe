// How much memory does a session need that is open and idle, and one that has answered a request?
#pragma once

#include <cstdio>
#include <fstream>
#include <vector>

#include <unistd.h>

#include "bench/batch/prompts.h"
#include "bench/batch/rig.h"
#include "bench/batch/settings.h"
#include "bench/bench_json.h"

namespace knap::bench {

// Resident memory of this process.
inline double resident_mib() {
    std::ifstream file("/proc/self/statm");
    long n_all = 0;
    long n_resident = 0;
    file >> n_all >> n_resident;
    return static_cast<double>(n_resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

inline void measure_memory(BatchRig& rig,
                           BatchPrompts& prompts,
                           const BatchSettings& settings,
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
    double n_rows = 0;
    for (Session& session : sessions) {
        const Prompt prompt = prompts.random(settings.shortest);
        session.generate(prompt, options_of(plain_decoding().strategy, kFewTokens));
        n_rows += settings.shortest + kFewTokens;
    }
    const double used = resident_mib();
    const double rows_mib =
        n_rows * static_cast<double>(engine.info().cache_bytes_per_token) / (1 << 20);
    std::printf(
        "\nMemory of a session, with a context of %d tokens: %.2f MiB open and idle, %.2f MiB "
        "after "
        "a request of %d + %d tokens, whose cache rows take %.2f MiB (means of %d sessions)\n",
        n_ctx, (open - before) / kSessions, (used - before) / kSessions, settings.shortest,
        kFewTokens, rows_mib / kSessions, kSessions);
    std::fflush(stdout);
    json.add_row({{"question", "memory"},
                  {"sessions", kSessions},
                  {"context", n_ctx},
                  {"idle_mib", (open - before) / kSessions},
                  {"used_mib", (used - before) / kSessions},
                  {"rows_mib", rows_mib / kSessions}},
                 {}, settings.shortest + kFewTokens);
}

}  // namespace knap::bench

// The rows and loads of a benchmark that serves several prompts at once, from the answers of all
// turns.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tools/measure/load/load_times.h"
#include "tools/measure/load/session_load.h"
#include "tools/measure/race_options.h"
#include "tools/measure/report/bench_report.h"

namespace knap {

using ServedTurns = std::vector<std::vector<ServedRequest>>;  // [turn][prompt]

// The answers of all sides with one rule.
struct ParallelTurns {
    RaceRule rule;
    std::vector<Contender> sides;          // plain decoding first
    std::vector<ServedTurns> sides_turns;  // by side; plain decoding's at the end of each turn
    ServedTurns plain_before;              // plain decoding at the start of each turn
    std::vector<std::vector<TokenTimes>> peer{};  // [turn][prompt]; empty: libllama takes no part
    std::string peer_setting{};
};

struct ParallelOutcome {
    std::vector<BenchRow> rows{};  // of every prompt: each side with each rule, and libllama
    std::vector<BenchLoad> loads{};
    std::vector<SkippedPrompt> skipped{};
};

// `references`: plain decoding's answers alone, by prompt. Throws knap::Error when a text that must
// equal its reference does not.
ParallelOutcome outcome_of(std::span<const BenchPrompt> prompts,
                           std::span<const Result> references,
                           std::span<const ParallelTurns> races,
                           const SamplingOptions& sampling);

}  // namespace knap

// What a race of strategies on prompts is asked for, and the requests that follow from it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "knap/types.h"

#include "tools/measure/contenders.h"
#include "tools/measure/report/bench_report.h"

namespace knap {

// An acceptance rule and its name on the command line. Greedy decoding has only one.
struct RaceRule {
    std::string name = kGreedy;
    AcceptanceRule rule = AcceptanceRule::shared_noise;
};

struct RaceOptions {
    std::vector<Contender> contenders;  // without plain decoding, which always takes part
    std::vector<RaceRule> rules{RaceRule{}};
    SamplingOptions sampling = SamplingOptions();
    double assume_acceptance = -1;  // below 0: off
    int n_predict = 128;            // tokens of an answer, 2 or more
    int n_turns = 3;
    std::vector<std::string> peers{};  // of kPeerNames: libllama takes part as well
    bool fresh_strategies = false;     // every prompt starts with new strategies
};

// Members may be empty. `is_cancelled` is also called on compute threads.
struct RaceObserver {
    std::function<void(double fraction)> on_progress{};  // of the current prompt
    std::function<bool()> is_cancelled{};
};

// The sides of a race with one rule: plain decoding first, then the contenders.
std::vector<Contender> sides_with(const RaceRule& rule, const RaceOptions& options);

// The request of a side for an answer of at most `n_predict` tokens.
GenerateOptions request_for(const BenchPrompt& prompt,
                            const SpeculationOptions& how,
                            int n_predict,
                            const RaceOptions& options);

// "FILE:3", or "DATA: ID" of a prompt that is not from a file.
std::string place_of(const BenchPrompt& prompt);

// Why the answer cannot be timed: its first token comes from the prefill. Empty when it can.
std::string why_too_short(const Result& result);

}  // namespace knap

// Strategies on answers that are known beforehand, on a machine whose times are known, without a
// model or a clock: for tests of what a strategy chooses.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "knap/types.h"

#include "decode/strategy.h"
#include "support/fake_machine.h"

namespace knap::test {

struct SimulatedAnswer {
    std::vector<Token> prompt;
    std::vector<Token> answer;
    // The share of right drafts of a window of so many recent tokens, around this position of the
    // answer. Where a window is right, one that accepts more is too.
    std::function<double(int recent, std::size_t position)> acceptance;
    // Drafts are drawn: they are right more often than their confidences say.
    bool is_sampled = false;
};

struct SimulatedMachine {
    FakeMachine machine;
    double noise = 0;  // relative error of times
    std::uint64_t seed = 1;
};

struct SimulatedTime {
    double ms = 0;  // of decoding
    int n_rounds = 0;
    int n_drafted = 0;
    int n_accepted = 0;
};

// Lets the strategy write the answer.
SimulatedTime write_answer(Strategy& strategy,
                           const SimulatedAnswer& answer,
                           const SimulatedMachine& machine);

// Answers. Tokens are below 10,000.

// Text in which tokens repeat by chance, as in language, and which goes back to earlier text with
// the probability `often` at every token, and copies a run of about `n_run` tokens.
std::vector<Token> repetitive(std::size_t n_tokens, double often, int n_run, std::uint64_t seed);

}  // namespace knap::test

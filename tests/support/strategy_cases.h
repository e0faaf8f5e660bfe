// Every strategy, with settings that make it draft and search often on a small model: the list for
// tests with one body for all strategies.
#pragma once

#include <ostream>
#include <span>
#include <string_view>
#include <vector>

#include "knap/knap.h"

namespace knap::test {

struct StrategyCase {
    const char* name;
    SpeculationOptions speculation;
    bool always_drafts = true;  // also where that does not pay
    // On a trained model, with a profile that leaves nothing to the machine's speed.
    bool is_eager = false;
};

void PrintTo(const StrategyCase& c, std::ostream* out);

std::span<const StrategyCase> strategy_cases();

// The engine for a case: a context of at least 256 tokens, one thread, batch-invariant passes.
RuntimeConfig config_of(const StrategyCase& c);
// The same for a tiny model of any shape, and every case that is not eager.
RuntimeConfig config_of_shape(std::string_view shape);

// A prompt of `n` random tokens or, for an eager case, of four times as many of a text that repeats
// itself.
std::vector<Token> prompt_of(const StrategyCase& c, const Engine& engine, int n, unsigned seed = 1);

// Prompts that continue one another, return to their beginning, and have nothing in common.
std::vector<std::vector<Token>> conversation_of(const StrategyCase& c, const Engine& engine);

}  // namespace knap::test

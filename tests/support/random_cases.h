// Random speculative runs: plans of every level, draft lengths, stop rules, prompts around context
// buckets, ways of sampling. A case is a function of its seed alone.
#pragma once

#include <random>
#include <span>
#include <string>

#include "decode/strategy.h"
#include "graph/module_plan.h"
#include "support/round_rig.h"

namespace knap::test {

struct RandomCase {
    RandomCase(unsigned seed, const ModelConfig& config);

    // Proposes the case's plan at its length, with guesses of `text` where the case has them: the
    // tokens that plain decoding generates. Case and text must outlive it.
    Propose propose(std::span<const Token> text) const;
    std::string describe() const;

    DecodeCase decode;
    ModulePlan plan;
    StopRule stop;
    int width = 1;
    // Of guesses: one token in so many is wrong, 1: all are. 0: nothing is guessed.
    int one_wrong_in = 0;
    Token end_of_text = -1;
};

ModulePlan random_plan(std::mt19937& random, int n_layers);

}  // namespace knap::test

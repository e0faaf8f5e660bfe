// Random speculative runs: plans of every level, draft lengths, stop rules, prompts around context
// buckets, sampling options. A case depends only on its seed.
#pragma once

#include <random>
#include <span>
#include <string>

#include "decode/strategy.h"
#include "forward/module_plan.h"
#include "support/round_rig.h"

namespace knap::test {

struct RandomCase {
    RandomCase(unsigned seed, const ModelConfig& config);

    // Proposes the case's plan at its length. If the case has guesses, they come from `text`, the
    // tokens of plain decoding. The case and the text must outlive the result.
    Propose propose(std::span<const Token> text) const;
    std::string describe() const;

    DecodeCase decode;
    ModulePlan plan;
    StopRule stop;
    int width = 1;
    // One guessed token in this many is wrong; 1: all are. 0: no guesses.
    int one_wrong_in = 0;
    Token end_of_text = -1;
};

ModulePlan random_plan(std::mt19937& random, int n_layers);

}  // namespace knap::test

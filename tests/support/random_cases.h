// Random speculative runs: plans of every level, draft lengths, stop rules, prompts around context
// buckets, ways of sampling. A case is a function of its seed alone.
#pragma once

#include <random>
#include <string>

#include "decode/strategy.h"
#include "graph/module_plan.h"
#include "support/round_rig.h"

namespace knap::test {

struct RandomCase {
    RandomCase(unsigned seed, const ModelConfig& config);

    // Proposes the case's plan at its length; the case must outlive it.
    Propose propose() const;
    std::string describe() const;

    DecodeCase decode;
    ModulePlan plan;
    StopRule stop;
    int width = 1;
    Token end_of_text = -1;
};

ModulePlan random_plan(std::mt19937& random, int n_layers);

}  // namespace knap::test

// Who sees whom, asked pair by pair; and random passes of every layout.
#pragma once

#include <optional>
#include <random>
#include <vector>

#include "graph/attention_layout.h"
#include "graph/module_plan.h"

namespace knap::test {

// Whether row `row` of a pass sees cache row `j`, with an attention of that window or at full.
bool naively_sees(const AttentionLayout& layout,
                  const std::optional<Window>& window,
                  int first_row,
                  int row,
                  int j);

// A pass that a cache of some capacity may run. The layout refers to `parents`.
struct RandomPass {
    RandomPass() = default;
    RandomPass(RandomPass&&) = default;  // a moved vector keeps its numbers where they are
    RandomPass& operator=(RandomPass&&) = default;

    AttentionLayout layout{};
    int first_row = 0;
    int n_rows = 0;
    std::vector<int> parents{};
};

RandomPass random_pass(std::mt19937& engine,
                       AttentionLayout::Kind kind,
                       int capacity,
                       int max_rows);
Window random_window(std::mt19937& engine);
int random_between(std::mt19937& engine, int low, int high);  // both included

}  // namespace knap::test

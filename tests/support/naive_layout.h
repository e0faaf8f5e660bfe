// Which rows attend to which, decided pair by pair; and random passes of every layout.
#pragma once

#include <optional>
#include <random>
#include <vector>

#include "forward/attention_layout.h"
#include "forward/module_plan.h"

namespace knap::test {

// Whether row `row` of a pass attends to cache row `j`.
bool naively_sees(
    const AttentionLayout& layout, const AttentionScope& scope, int first_row, int row, int j);

// A pass that fits in a cache of some capacity. The layout refers to `parents`.
struct RandomPass {
    RandomPass() = default;
    RandomPass(RandomPass&&) = default;  // moving a vector keeps its data in place
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

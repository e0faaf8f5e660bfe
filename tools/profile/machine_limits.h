// What this machine can do at best, and how far a pass on the CPU is from it. A pass reads its
// weights and cache rows once and multiplies them with every row: it cannot take less time than the
// memory needs for the one and the cores for the other.
#pragma once

#include <cstdint>
#include <optional>

#include "knap/knap.h"

#include "forward/module_plan.h"

namespace knap {

struct MachineLimits {
    double gb_per_second = 0;  // threads that only read memory
    // Billions of multiply-adds a second: products of weights and rows that are in the first cache
    double gmac_per_second = 0;
};

// With the engine's threads. Takes about a second. None if another device than the CPU computes, or
// if not all of it is done by knap's own operators.
std::optional<MachineLimits> measure_limits(const Engine& engine);

struct LeastWork {
    std::int64_t bytes = 0;
    std::int64_t n_multiply_adds = 0;

    double memory_ms(const MachineLimits& limits) const;
    double arithmetic_ms(const MachineLimits& limits) const;
    double least_ms(const MachineLimits& limits) const;  // the larger of the two
};

// Of a pass of the whole model with logits of every row, after `n_context` rows.
LeastWork whole_pass_work(const Engine& engine, int n_context, int n_rows);
// What one row after `n_context` rows adds to it in a module, and in the head.
LeastWork module_work(const Engine& engine, int layer, Module module, int n_context);
LeastWork head_work(const Engine& engine);

}  // namespace knap

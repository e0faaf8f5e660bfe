// The bytes that a pass with a plan reads: a sum over the modules that run (docs/methods.md, "When
// speculation pays").
#pragma once

#include <cstdint>
#include <vector>

#include "knap/types.h"

#include "forward/module_plan.h"

namespace knap {

class Weights;
struct ModelConfig;

// The experts of a layer of which each row chooses some. The more rows a pass has, the more experts
// one of them has chosen: n rows read X (1 - (1 - k / X)^n) of X experts, if they choose k each and
// their choices are independent.
struct ExpertCost {
    std::int64_t bytes = 0;  // of one expert
    int n_experts = 0;       // 0: no experts
    int n_used = 0;          // by a row of the whole model

    // Experts that `n_rows` rows read if each uses `n_allowed` (0: as many as in the whole model).
    double n_read(int n_allowed, int n_rows) const;
};

// Weights as stored, with norms and biases.
struct LayerCost {
    std::int64_t attention_bytes = 0;
    std::int64_t mlp_bytes = 0;  // without experts that rows choose
    ExpertCost experts{};
    int window = 0;  // positions that its attention sees at most, the row's own included; 0: all
};

struct ModelCost {
    std::vector<LayerCost> layers;
    std::int64_t head_bytes = 0;
    std::int64_t reduced_head_bytes = 0;   // for the rows that a reduced head has
    std::int64_t embedding_row_bytes = 0;  // looked up, per row
    std::int64_t rope_bytes = 0;           // frequency divisors, shared by every layer
    std::int64_t cache_row_bytes = 0;      // one row of keys and one of values, in one layer
};

ModelCost model_cost(const ModelConfig& config,
                     const Weights& weights,
                     std::size_t cache_row_bytes);

struct PlanCost {
    std::int64_t weight_bytes = 0;
    std::int64_t cache_bytes = 0;

    bool operator==(const PlanCost&) const = default;
};

// The cost of a pass of `n_rows` rows, each with logits, after `n_context` committed rows. Full
// attention reads these and the pass's own rows; windowed attention reads at most its window and
// the pass's own rows.
PlanCost plan_cost(const ModelCost& model, const ModulePlan& plan, int n_context, int n_rows);

}  // namespace knap

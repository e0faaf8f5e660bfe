// What a pass with a plan reads and computes: the ingredients that a device's speed turns into
// time. Bytes count once per pass, operations once per row; both are linear in the modules that
// run, so the cost of a plan is a sum (methods 3.2, 3.16).
#pragma once

#include <cstdint>
#include <vector>

#include "knap/types.h"

#include "graph/module_plan.h"

namespace knap {

class Weights;
struct KvCacheOptions;
struct ModelConfig;

// Operations are multiplications and additions of matrix products; what goes element by element is
// left out.
struct ModuleCost {
    std::int64_t weight_bytes = 0;  // as stored, with norm and biases
    std::int64_t operations = 0;    // with the weights, per row
};

struct LayerCost {
    ModuleCost attention;
    ModuleCost mlp;
};

struct ModelCost {
    std::vector<LayerCost> layers;
    ModuleCost head;
    ModuleCost reduced_head;               // as many rows of it as drafting has
    std::int64_t embedding_row_bytes = 0;  // looked up, per row
    std::int64_t rope_bytes = 0;           // frequency divisors, shared by every layer
    std::int64_t cache_row_bytes = 0;      // one row of keys and one of values, in one layer
    // Of one row's queries with one row of the cache, and of the weighted sum of its values.
    std::int64_t operations_per_cache_row = 0;
};

ModelCost model_cost(const ModelConfig& config,
                     const Weights& weights,
                     const KvCacheOptions& cache);

struct PlanCost {
    std::int64_t weight_bytes = 0;
    std::int64_t cache_bytes = 0;
    std::int64_t operations = 0;

    bool operator==(const PlanCost&) const = default;
};

// A pass of `n_rows` rows, each with logits, after `n_context` committed rows. A full attention
// reads these and the pass's own rows, a windowed one at most its window and the pass's own.
PlanCost plan_cost(const ModelCost& model, const ModulePlan& plan, int n_context, int n_rows);

}  // namespace knap

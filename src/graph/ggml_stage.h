// A stage that computes with ggml graphs, on any device: with our CPU operators on the host, with
// ggml's elsewhere. Has the device's graphs, inputs and compute memory.
#pragma once

#include <memory>

#include "forward/stage.h"
#include "graph/attention/attention_policy.h"
#include "graph/cache/ggml_kv_store.h"

namespace knap {

struct ModelTensors;

// What passes over the layers of one device need. All references must outlive the stage.
struct StageParts {
    const ModelConfig& config;
    const ModelTensors& tensors;
    GgmlKvStore& cache;
    AttentionPolicy attention;
    int max_rows = 0;  // of a pass
};

// Reserves the memory of the largest pass.
std::unique_ptr<Stage> new_ggml_stage(const StageParts& parts);

}  // namespace knap

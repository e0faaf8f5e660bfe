// A stage on the CPU that runs our operators itself, without graphs.
#pragma once

#include <memory>

#include "forward/stage.h"
#include "graph/cache/ggml_kv_store.h"
#include "model/config.h"
#include "model/weights.h"

namespace knap {

// All arguments must outlive the stage; `cache` has a tiled layout, and has_cpu_weights() holds for
// its layers. Reserves the memory of the largest pass.
std::unique_ptr<Stage> new_cpu_stage(const ModelConfig& config,
                                     const ModelTensors& tensors,
                                     GgmlKvStore& cache,
                                     int max_rows);

}  // namespace knap

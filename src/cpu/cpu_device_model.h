// Layers of a model on the CPU, computed by our own operators.
#pragma once

#include <memory>

#include "graph/ggml_device_model.h"

namespace knap {

// has_cpu_weights() holds, and the path of `attention` is our kernel. All arguments must outlive
// the result and what it makes.
std::unique_ptr<DeviceModel> new_cpu_device_model(const ModelConfig& config,
                                                  const ModelTensors& tensors,
                                                  const LayerShare& share,
                                                  const CacheTypes& types,
                                                  const AttentionPolicy& attention);

}  // namespace knap

// The devices of a model: an NVIDIA GPU or the CPU with operators of our own where they cover its
// layers, ggml's graphs everywhere else.
#pragma once

#include "graph/ggml_device_model.h"

namespace knap {

// Layers of a model on one device. All arguments must outlive the result and what it makes.
std::unique_ptr<DeviceModel> new_device_model(const ModelConfig& config,
                                              const ModelTensors& tensors,
                                              const LayerShare& share,
                                              const CacheTypes& types,
                                              const AttentionPolicy& attention);

// One for each share of the layers, with the engine's choice of attention.
DeviceModels new_device_models(const ModelConfig& config,
                               const ModelTensors& tensors,
                               const LayerMap& layers,
                               const RuntimeConfig& runtime,
                               int exact_rows);

}  // namespace knap

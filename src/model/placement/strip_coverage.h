// Whether our CUDA kernels compute a model: all of it, with every matrix in strips
// (kernels/cuda/strips.h), or nothing.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/cuda/device_memory.h"
#include "kernels/cuda/step_memory.h"
#include "model/config.h"
#include "model/tensor_table.h"
#include "model/weights.h"

namespace knap {

class LayerMap;

// What counts of the devices of a model.
struct StripDevices {
    std::vector<std::string> names;  // ggml's, in layer order
    CudaDevice first{};              // the first of them
    bool has_kernels = false;        // in this build
};
StripDevices strip_devices(const LayerMap& layers);

// Why the kernels do not compute a model, in a few words for statistics: "layers on several
// devices". Returns nullopt when they do. `bindings` point into `tensors`.
std::optional<std::string> why_not_strips(const ModelConfig& config,
                                          std::span<const TensorBinding> bindings,
                                          const ModelTensors& tensors,
                                          const StripDevices& devices,
                                          const WeightOptions& options);

// What decides how the kernel for passes of a few rows uses a device's memory. `types` are those of
// the matrices that rows are multiplied by.
StepNeeds step_needs(const ModelConfig& config,
                     std::span<const ggml_type> types,
                     bool has_post_norms);

}  // namespace knap

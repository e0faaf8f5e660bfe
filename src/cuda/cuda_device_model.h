// All layers of a model on one NVIDIA GPU, computed by our own kernels.
#pragma once

#include <memory>

#include "forward/stage.h"
#include "kernels/cuda/device_memory.h"
#include "model/cache_type.h"
#include "model/config.h"
#include "model/weights.h"

namespace knap {

// The matrices of `tensors` are in strips in the memory of `device`. The first two arguments must
// outlive the result and what it makes.
std::unique_ptr<DeviceModel> new_cuda_device_model(const ModelConfig& config,
                                                   const ModelTensors& tensors,
                                                   const CudaDevice& device,
                                                   const CacheTypes& types);

}  // namespace knap

// A stage on an NVIDIA GPU that runs our own kernels, without graphs.
#pragma once

#include <memory>

#include "cuda/cuda_kv_store.h"
#include "forward/stage.h"
#include "model/config.h"
#include "model/weights.h"

namespace knap {

// All arguments must outlive the stage; the matrices of `tensors` are in strips on the device of
// `cache`. Reserves the memory of the largest pass.
std::unique_ptr<Stage> new_cuda_stage(const ModelConfig& config,
                                      const ModelTensors& tensors,
                                      CudaKvStore& cache,
                                      int max_rows);

}  // namespace knap

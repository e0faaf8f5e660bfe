// A model whose tensors were copied to an NVIDIA GPU and packed into strips without ggml's help:
// the CUDA kernels can be tested in builds whose ggml has no CUDA.
#pragma once

#include <deque>
#include <filesystem>

#include "ggml-cpp.h"

#include "forward/single_sequence.h"
#include "kernels/cuda/device_memory.h"
#include "runtime/device_models.h"
#include "support/loaded_model.h"

namespace knap::test {

class StripModel {
  public:
    explicit StripModel(const std::filesystem::path& path);

    const ModelConfig& config() const { return host_.config; }
    LoadedModel& host() { return host_; }
    const ModelTensors& tensors() const { return tensors_; }
    const CudaDevice& device() const { return device_; }
    // As on a device with `shared_bytes` of shared memory for a block; 0: what this one has.
    DeviceModels device_models(const CacheTypes& types = {}, std::size_t shared_bytes = 0) const;

  private:
    void upload(ggml_tensor*& tensor, bool is_matrix);

    LoadedModel host_;
    CudaDevice device_;
    ggml_context_ptr context_;
    std::deque<CudaMemory> memory_;
    ModelTensors tensors_;
};

// Whether there is a GPU that the kernels run on.
bool has_strip_gpu();

}  // namespace knap::test

#define KNAP_SKIP_WITHOUT_STRIPS()                                   \
    if (!knap::test::has_strip_gpu()) {                              \
        GTEST_SKIP() << "no NVIDIA GPU, or a build without kernels"; \
    }

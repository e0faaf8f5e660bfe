#include "cuda/cuda_device_model.h"

#include "knap/types.h"

#include "base/error.h"
#include "cuda/cuda_kv_store.h"
#include "cuda/cuda_stage.h"
#include "cuda/cuda_weights.h"
#include "kernels/cuda/cache_pages.h"
#include "kernels/cuda/pass.h"

namespace knap {
namespace {

class CudaDeviceModel final : public DeviceModel {
  public:
    CudaDeviceModel(const ModelConfig& config,
                    const ModelTensors& tensors,
                    const CudaDevice& device,
                    const CacheTypes& types)
        : config_(config),
          tensors_(tensors),
          layers_{0, config.n_layers},
          device_(device),
          types_(types),
          verify_rows_(max_step_rows(step_needs(config, tensors), device.shared_bytes)) {}

    LayerRange layers() const override { return layers_; }
    // Passes of any size have the bits of single-row passes: the kernels split sums by position
    // only.
    DeviceLimits limits() const override {
        return {.exact_rows = kMaxUbatch,
                .has_exact_trees = true,
                .verify_rows = verify_rows_,
                .page_rows = kCudaPageRows,
                .attention = "kernel"};
    }
    std::unique_ptr<KvStore> new_store(const PageShape& pages) const override {
        return std::make_unique<CudaKvStore>(config_, layers_, device_, types_, pages);
    }
    std::unique_ptr<Stage> new_stage(KvStore& store, int max_rows) const override {
        return new_cuda_stage(config_, tensors_, static_cast<CudaKvStore&>(store), max_rows);
    }

  private:
    const ModelConfig& config_;
    const ModelTensors& tensors_;
    LayerRange layers_;
    CudaDevice device_;
    CacheTypes types_;
    int verify_rows_;
};

}  // namespace

std::unique_ptr<DeviceModel> new_cuda_device_model(const ModelConfig& config,
                                                   const ModelTensors& tensors,
                                                   const CudaDevice& device,
                                                   const CacheTypes& types) {
    KNAP_ASSERT(tensors.has_strips, "our kernels read strips");
    return std::make_unique<CudaDeviceModel>(config, tensors, device, types);
}

}  // namespace knap

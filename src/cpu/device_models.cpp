#include "cpu/device_models.h"

#include "cpu/cpu_stage.h"
#include "cpu/cpu_weights.h"
#include "device/backend.h"

namespace knap {
namespace {

// Layers on the CPU, computed by our own operators.
class CpuDeviceModel final : public DeviceModel {
  public:
    CpuDeviceModel(const ModelConfig& config,
                   const ModelTensors& tensors,
                   const LayerShare& share,
                   const CacheTypes& types,
                   const AttentionPolicy& attention)
        : config_(config), tensors_(tensors), stored_(config, tensors, share, types, attention) {}

    LayerRange layers() const override { return stored_.layers(); }
    DeviceLimits limits() const override { return stored_.limits(); }
    std::unique_ptr<KvStore> new_store(const PageShape& pages) const override {
        return stored_.new_store(pages);
    }
    std::unique_ptr<Stage> new_stage(KvStore& store, int max_rows) const override {
        return new_cpu_stage(config_, tensors_, static_cast<GgmlKvStore&>(store), max_rows);
    }

  private:
    const ModelConfig& config_;
    const ModelTensors& tensors_;
    GgmlDeviceModel stored_;  // its rows are ours too
};

}  // namespace

std::unique_ptr<DeviceModel> new_device_model(const ModelConfig& config,
                                              const ModelTensors& tensors,
                                              const LayerShare& share,
                                              const CacheTypes& types,
                                              const AttentionPolicy& attention) {
    if (attention.path == AttentionPath::kernel && has_cpu_weights(config, tensors, share)) {
        return std::make_unique<CpuDeviceModel>(config, tensors, share, types, attention);
    }
    return std::make_unique<GgmlDeviceModel>(config, tensors, share, types, attention);
}

DeviceModels new_device_models(const ModelConfig& config,
                               const ModelTensors& tensors,
                               const LayerMap& layers,
                               const RuntimeConfig& runtime,
                               int exact_rows) {
    DeviceModels models;
    for (const LayerShare& share : layers.shares()) {
        models.push_back(new_device_model(
            config, tensors, share, CacheTypes{runtime.cache_type_k, runtime.cache_type_v},
            choose_attention(config, runtime, *share.backend, exact_rows)));
    }
    return models;
}

}  // namespace knap

#include "cpu/cpu_device_model.h"

#include "cpu/cpu_stage.h"

namespace knap {
namespace {

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

std::unique_ptr<DeviceModel> new_cpu_device_model(const ModelConfig& config,
                                                  const ModelTensors& tensors,
                                                  const LayerShare& share,
                                                  const CacheTypes& types,
                                                  const AttentionPolicy& attention) {
    return std::make_unique<CpuDeviceModel>(config, tensors, share, types, attention);
}

}  // namespace knap

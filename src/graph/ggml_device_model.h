// Layers of a model on a device of ggml.
#pragma once

#include <memory>
#include <vector>

#include "device/layer_map.h"
#include "forward/stage.h"
#include "graph/attention/attention_policy.h"
#include "model/config.h"
#include "model/weights.h"

namespace knap {

class GgmlDeviceModel final : public DeviceModel {
  public:
    // All arguments must outlive the object and what it makes. Layers whose tensors have no MLP
    // consist of attention only, whatever the plan.
    GgmlDeviceModel(const ModelConfig& config,
                    const ModelTensors& tensors,
                    const LayerShare& share,
                    const CacheTypes& types,
                    const AttentionPolicy& attention);

    LayerRange layers() const override { return {share_.first_layer, share_.end_layer}; }
    DeviceLimits limits() const override { return attention_limits(attention_, *share_.backend); }
    std::unique_ptr<KvStore> new_store(const PageShape& pages) const override;
    std::unique_ptr<Stage> new_stage(KvStore& store, int max_rows) const override;

  private:
    const ModelConfig& config_;
    const ModelTensors& tensors_;
    LayerShare share_;
    CacheTypes types_;
    AttentionPolicy attention_;
};

using DeviceModels = std::vector<std::unique_ptr<DeviceModel>>;

}  // namespace knap

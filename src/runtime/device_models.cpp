#include "runtime/device_models.h"

#include "cpu/cpu_device_model.h"
#include "cpu/cpu_weights.h"
#include "cuda/cuda_device_model.h"
#include "device/backend.h"

namespace knap {

std::unique_ptr<DeviceModel> new_device_model(const ModelConfig& config,
                                              const ModelTensors& tensors,
                                              const LayerShare& share,
                                              const CacheTypes& types,
                                              const AttentionPolicy& attention) {
    if (tensors.has_strips) {
        return new_cuda_device_model(
            config, tensors, find_cuda_device(ggml_backend_dev_name(share.backend->device())),
            types);
    }
    if (attention.path == AttentionPath::kernel && has_cpu_weights(config, tensors, share)) {
        return new_cpu_device_model(config, tensors, share, types, attention);
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

#include "graph/ggml_device_model.h"

#include "graph/ggml_stage.h"

namespace knap {

GgmlDeviceModel::GgmlDeviceModel(const ModelConfig& config,
                                 const ModelTensors& tensors,
                                 const LayerShare& share,
                                 const CacheTypes& types,
                                 const AttentionPolicy& attention)
    : config_(config), tensors_(tensors), share_(share), types_(types), attention_(attention) {}

std::unique_ptr<KvStore> GgmlDeviceModel::new_store(const PageShape& pages) const {
    return std::make_unique<GgmlKvStore>(
        config_, share_,
        KvStoreShape{
            .types = types_, .layout = layout_for(attention_.path, types_.keys), .pages = pages});
}

std::unique_ptr<Stage> GgmlDeviceModel::new_stage(KvStore& store, int max_rows) const {
    return new_ggml_stage({.config = config_,
                           .tensors = tensors_,
                           .cache = static_cast<GgmlKvStore&>(store),
                           .attention = attention_,
                           .max_rows = max_rows});
}

}  // namespace knap

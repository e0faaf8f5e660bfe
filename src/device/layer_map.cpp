#include "device/layer_map.h"

#include <algorithm>

#include "base/error.h"

namespace knap {

LayerMap::LayerMap(Backend& backend, int n_layers)
    : shares_{{.backend = &backend, .first_layer = 0, .end_layer = n_layers}} {}

LayerMap::LayerMap(std::span<const LayerCount> counts) {
    int first_layer = 0;
    for (const auto& [backend, n_layers] : counts) {
        if (n_layers > 0) {
            shares_.push_back({.backend = &backend,
                               .first_layer = first_layer,
                               .end_layer = first_layer + n_layers});
            first_layer += n_layers;
        }
    }
    KNAP_ASSERT(!shares_.empty(), "some device has layers");
}

const LayerShare& LayerMap::of_layer(int layer) const {
    const auto share = std::ranges::find_if(
        shares_, [layer](const LayerShare& candidate) { return candidate.has(layer); });
    KNAP_ASSERT(share != shares_.end(), "a layer of the model");
    return *share;
}

}  // namespace knap

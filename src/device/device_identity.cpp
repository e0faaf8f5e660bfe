#include "device/device_identity.h"

#include <string_view>

#include "ggml-backend.h"
#include "ggml.h"

#include "base/text.h"
#include "device/backend.h"
#include "device/layer_map.h"

namespace knap {
namespace {

// Features are pairs of a name and a value; "0" is one that is off.
std::string list_features(ggml_backend_reg_t registry) {
    auto* get_features = reinterpret_cast<ggml_backend_get_features_t>(
        ggml_backend_reg_get_proc_address(registry, "ggml_backend_get_features"));
    std::string list;
    if (get_features == nullptr) {
        return list;
    }
    for (const ggml_backend_feature* feature = get_features(registry); feature->name != nullptr;
         ++feature) {
        const std::string_view value = feature->value;
        if (value != "0") {
            list += concat(list.empty() ? "" : " ", feature->name, value == "1" ? "" : "=",
                           value == "1" ? "" : value);
        }
    }
    return list;
}

}  // namespace

DeviceIdentity identify(const Backend& backend) {
    return {
        .name = ggml_backend_dev_description(backend.device()),
        .features = list_features(ggml_backend_dev_backend_reg(backend.device())),
        .ggml = concat(ggml_version(), " ", ggml_commit()),
    };
}

DeviceIdentity identify(const LayerMap& layers) {
    DeviceIdentity whole = identify(*layers.first().backend);
    if (layers.shares().size() == 1) {
        return whole;
    }
    whole.name.clear();
    whole.features.clear();
    for (const LayerShare& share : layers.shares()) {
        const DeviceIdentity device = identify(*share.backend);
        const char* comma = whole.name.empty() ? "" : ", ";
        whole.name += concat(comma, device.name, " x", share.n_layers());
        whole.features += concat(comma, device.features);
    }
    return whole;
}

}  // namespace knap

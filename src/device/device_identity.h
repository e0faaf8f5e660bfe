// Describes the hardware and software that compute, to identify results that hold on one machine
// only.
#pragma once

#include <string>

namespace knap {

class Backend;
class LayerMap;

struct DeviceIdentity {
    std::string name;      // "AMD EPYC 7B13"
    std::string features;  // instruction sets that ggml uses: "SSE3 SSSE3 AVX AVX2 ..."
    std::string ggml;      // version and commit
};

DeviceIdentity identify(const Backend& backend);
// For several devices, with the number of layers on each.
DeviceIdentity identify(const LayerMap& layers);

}  // namespace knap

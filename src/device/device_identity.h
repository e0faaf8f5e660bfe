// What computes, in words: for whatever is only true of one machine.
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
// Of several devices together, with how many layers each has.
DeviceIdentity identify(const LayerMap& layers);

}  // namespace knap

// Whether a model, its cache and what a pass needs beside them fit the memory of a device: asked
// before anything is loaded, for ggml ends the process, or a session later fails, where they do
// not.
#pragma once

#include <cstddef>

#include "knap/types.h"

#include "device/device_list.h"
#include "device/layer_map.h"
#include "model/config.h"
#include "model/gguf/gguf_file.h"

namespace knap {

struct DeviceNeed {
    std::size_t weight_bytes = 0;
    std::size_t cache_row_bytes = 0;  // of a token in all layers
    std::size_t scratch_bytes = 0;    // of the largest pass
    int n_ctx = 0;
    // For advice on fewer layers: how many there are, 0 where none can be given, and what of the
    // weights stays when one goes.
    int n_layers = 0;
    std::size_t fixed_weight_bytes = 0;

    std::size_t total() const;
};

// Of a device's layers and what goes with them (layer_map.h), and of the latter alone.
std::size_t stored_bytes(const GgufFile& file, const LayerMap& layers, const LayerShare& share);
std::size_t stored_bytes_outside_layers(const GgufFile& file,
                                        const LayerMap& layers,
                                        const LayerShare& share);

// What passes of `n_ubatch` rows take at most beside weights and cache, generously.
std::size_t estimate_scratch(const ModelConfig& model, int n_ubatch, int n_ctx);

// Throws knap::Error that says what is needed, what there is and what would fit.
void check_fits(const DeviceEntry& device, const DeviceNeed& need);

}  // namespace knap

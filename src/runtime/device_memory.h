// Checks whether a model, its cache and the memory of a pass fit on a device. This runs before
// anything is loaded, because otherwise ggml would abort the process or a session would fail later.
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
    std::size_t cache_row_bytes = 0;  // per token of context, over layers and conversations
    std::size_t scratch_bytes = 0;    // for the largest pass
    int n_ctx = 0;
    // For advice on using fewer layers: their number (0: no advice), and the weights that remain
    // whatever their number.
    int n_layers = 0;
    std::size_t fixed_weight_bytes = 0;

    std::size_t total() const;
};

// The stored weights of a device's layers and of what goes with them (layer_map.h), and of the
// latter alone.
std::size_t stored_bytes(const GgufFile& file, const LayerMap& layers, const LayerShare& share);
std::size_t stored_bytes_outside_layers(const GgufFile& file,
                                        const LayerMap& layers,
                                        const LayerShare& share);

// An upper estimate of the memory that passes of `n_ubatch` rows need besides weights and cache.
std::size_t estimate_scratch(const ModelConfig& model, int n_ubatch, int n_ctx);

// Throws knap::Error with what is needed, what is available and what would fit.
void check_fits(const DeviceEntry& device, const DeviceNeed& need);

}  // namespace knap

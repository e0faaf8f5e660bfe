#include "runtime/device_memory.h"

#include <charconv>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/number_text.h"
#include "base/text.h"
#include "forward/forward.h"

namespace knap {
namespace {

std::string gib(std::size_t n_bytes) {
    return format_gib(n_bytes, 2);
}

// The longest context, in whole steps, that leaves room for the rest; 0: none does.
int fitting_context(const DeviceEntry& device, const DeviceNeed& need) {
    constexpr std::size_t kStep = 256;
    const std::size_t fixed = need.weight_bytes + need.scratch_bytes;
    if (fixed >= device.free_bytes) {
        return 0;
    }
    const std::size_t n_rows = (device.free_bytes - fixed) / need.cache_row_bytes;
    return static_cast<int>(n_rows / kStep * kStep);
}

// How many of the last layers leave room for the rest; 0: none do.
int fitting_layers(const DeviceEntry& device, const DeviceNeed& need) {
    const std::size_t fixed = need.fixed_weight_bytes + need.scratch_bytes;
    if (need.n_layers == 0 || fixed >= device.free_bytes) {
        return 0;
    }
    const std::size_t of_layers = need.total() - fixed;
    return static_cast<int>((device.free_bytes - fixed) * static_cast<std::size_t>(need.n_layers) /
                            of_layers);
}

std::string advice_for(const DeviceEntry& device, const DeviceNeed& need) {
    const int n_ctx = fitting_context(device, need);
    const int n_layers = fitting_layers(device, need);
    const std::string context = n_ctx > 0 ? concat("`.n_ctx` ", n_ctx) : "";
    const std::string layers = n_layers > 0 ? concat("`.n_gpu_layers` ", n_layers) : "";
    if (context.empty() && layers.empty()) {
        return "not even its weights fit: `.devices` CPU does without";
    }
    return concat(context, context.empty() || layers.empty() ? "" : " or ", layers, " would fit");
}

// The layer that a tensor belongs to by its name, "blk.12.attn_q.weight"; -1: none.
int layer_of(std::string_view tensor) {
    constexpr std::string_view kPrefix = "blk.";
    int layer = -1;
    if (tensor.starts_with(kPrefix)) {
        std::from_chars(tensor.data() + kPrefix.size(), tensor.data() + tensor.size(), layer);
    }
    return layer;
}

// The bytes of the tensors that `counts(tensor, its layer)`.
template <typename Counts>
std::size_t sum_bytes(const GgufFile& file, Counts counts) {
    std::size_t n_bytes = 0;
    for (const TensorInfo& tensor : file.tensors()) {
        n_bytes += counts(tensor, layer_of(tensor.name)) ? tensor.n_bytes : 0;
    }
    return n_bytes;
}

}  // namespace

std::size_t stored_bytes(const GgufFile& file, const LayerMap& layers, const LayerShare& share) {
    return stored_bytes_outside_layers(file, layers, share) +
           sum_bytes(file, [&](const TensorInfo&, int layer) { return share.has(layer); });
}

std::size_t stored_bytes_outside_layers(const GgufFile& file,
                                        const LayerMap& layers,
                                        const LayerShare& share) {
    const bool has_embedding = share.first_layer == 0;
    const bool has_head = share.end_layer == layers.n_layers();
    const bool is_tied = file.find("output.weight") == nullptr;
    return sum_bytes(file, [&](const TensorInfo& tensor, int layer) {
        const bool is_embedding = tensor.name == "token_embd.weight";
        return layer < 0 &&
               ((is_embedding && has_embedding) || (has_head && (!is_embedding || is_tied)));
    });
}

std::size_t DeviceNeed::total() const {
    return weight_bytes + cache_row_bytes * static_cast<std::size_t>(n_ctx) + scratch_bytes;
}

std::size_t estimate_scratch(const ModelConfig& model, int n_ubatch, int n_ctx) {
    constexpr std::size_t kStreams = 6;  // of a pass: the stream, its norm, queries, keys, values
    constexpr std::size_t kDevice = 512 << 20;  // the driver's own, and captured graphs
    const auto n_rows = static_cast<std::size_t>(n_ubatch);
    const std::size_t values = n_rows * (kStreams * static_cast<std::size_t>(model.n_embd) +
                                         3 * static_cast<std::size_t>(model.n_ff)) +
                               kReservedLogitRows * static_cast<std::size_t>(model.n_vocab);
    const std::size_t mask = n_rows * static_cast<std::size_t>(n_ctx) * sizeof(std::uint16_t);
    return values * sizeof(float) + mask + kDevice;
}

void check_fits(const DeviceEntry& device, const DeviceNeed& need) {
    if (need.total() <= device.free_bytes) {
        return;
    }
    fail("device ", device.name, ": expected room for ", gib(need.weight_bytes), " of weights, ",
         gib(need.cache_row_bytes * static_cast<std::size_t>(need.n_ctx)), " of cache (`.n_ctx` ",
         need.n_ctx, ") and ", gib(need.scratch_bytes), " of scratch, found ",
         gib(device.free_bytes), " free; ", advice_for(device, need));
}

}  // namespace knap

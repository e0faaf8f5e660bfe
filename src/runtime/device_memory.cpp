#include "runtime/device_memory.h"

#include <string>

#include "base/error.h"
#include "base/number_text.h"
#include "base/text.h"

namespace knap {
namespace {

std::string gib(std::size_t n_bytes) {
    constexpr double kGib = 1 << 30;
    return concat(format_fixed(static_cast<double>(n_bytes) / kGib, 2), " GiB");
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

}  // namespace

std::size_t DeviceNeed::total() const {
    return weight_bytes + cache_row_bytes * static_cast<std::size_t>(n_ctx) + scratch_bytes;
}

std::size_t estimate_scratch(const ModelConfig& model, int n_ubatch, int n_ctx) {
    constexpr std::size_t kStreams = 6;  // of a pass: the stream, its norm, queries, keys, values
    constexpr std::size_t kLogitRows = 32;      // those that memory is reserved for
    constexpr std::size_t kDevice = 512 << 20;  // the driver's own, and captured graphs
    const auto n_rows = static_cast<std::size_t>(n_ubatch);
    const std::size_t values = n_rows * (kStreams * static_cast<std::size_t>(model.n_embd) +
                                         3 * static_cast<std::size_t>(model.n_ff)) +
                               kLogitRows * static_cast<std::size_t>(model.n_vocab);
    const std::size_t mask = n_rows * static_cast<std::size_t>(n_ctx) * sizeof(std::uint16_t);
    return values * sizeof(float) + mask + kDevice;
}

void check_fits(const DeviceEntry& device, const DeviceNeed& need) {
    if (need.total() <= device.free_bytes) {
        return;
    }
    const int n_fitting = fitting_context(device, need);
    const std::string advice =
        n_fitting > 0 ? concat("-c ", n_fitting, " would fit")
                      : std::string("not even its weights fit: --device CPU does without");
    fail("device ", device.name, ": expected room for ", gib(need.weight_bytes), " of weights, ",
         gib(need.cache_row_bytes * static_cast<std::size_t>(need.n_ctx)), " of cache (-c ",
         need.n_ctx, ") and ", gib(need.scratch_bytes), " of scratch, found ",
         gib(device.free_bytes), " free; ", advice);
}

}  // namespace knap

// How the step kernel divides the shared memory of a block. Arithmetic only: it also says whether a
// device has room for a model.
#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels/cuda/cache_pages.h"
#include "kernels/cuda/pass.h"
#include "kernels/cuda/strips.h"

namespace knap {

inline constexpr int kStepWarps = 8;  // that compute
inline constexpr int kMaxItemStrips = 4;
inline constexpr int kSlotAlignment = 128;  // slots and the region begin at multiples of it

KNAP_HOST_DEVICE constexpr int round_up_to(int n, int step) {
    return (n + step - 1) / step * step;
}

// Sums of an item, of all warps. Where there is room for two buffers, an item's sums are read while
// the next ones are written.
KNAP_HOST_DEVICE constexpr int sum_numbers(int columns) {
    return kStepWarps * kMaxItemStrips * kStripRows * columns;
}
KNAP_HOST_DEVICE constexpr int sum_buffers(int columns) {
    return columns > 8 ? 1 : 2;
}
KNAP_HOST_DEVICE constexpr int sum_bytes(int columns) {
    return sum_buffers(columns) * sum_numbers(columns) * 4;
}

// What attention needs, which is static in its kernel: queries, of each warp 16 keys and 16 values
// with their scales, and three numbers and two more for each warp and column.
constexpr int attention_bytes(int head_dim, int n_columns) {
    const int columns = n_columns <= 16 || max_cuda_columns(head_dim) == 16 ? 16 : 32;
    const int keys = head_dim <= 64 ? 64 : head_dim <= 128 ? 128 : 256;
    const int values = std::min(keys, 128);
    const int tiles = 16 * (keys + values + 2 * scale_places(head_dim)) * 2;
    return columns * keys * 2 + kStepWarps * (tiles + columns * 5 * 4);
}

// What drawing a token needs: static in its kernel too.
inline constexpr int kDrawBytes = 2 * kMaxListed * 8;

// What decides how the memory is divided, beside the pass.
struct StepNeeds {
    int head_dim = 0;
    int heads_per_kv = 0;
    int most_inputs = 0;  // of a product
    int n_layers = 0;
    int phases_per_layer = 5;
    int n_tables = 1;         // of rotations
    int slot_bytes = 0;       // of weights that are copied at once: the most of the model's types
    bool has_halves = false;  // some product takes floats
};

// The shared memory, in this order: what the pass is, barriers, slots, region, sums. Attention has
// no sums: it takes their place too.
struct StepMemory {
    int slot_bytes = 0;
    int n_slots = 0;
    int max_copies = 0;    // slots whose copies may be under way at once
    int region_bytes = 0;  // inputs of products, or what attention needs
    int barriers = 0;      // where each part begins
    int slots = 0;
    int region = 0;
    int sums = 0;
    int factors = 0;  // of norms
    int is_over = 0;  // whether the chain has ended
    int end = 0;

    constexpr void place(std::size_t pass_bytes, int columns) {
        barriers = round_up_to(static_cast<int>(pass_bytes), 16);
        slots = round_up_to(barriers + 2 * n_slots * 8, kSlotAlignment);
        region = slots + n_slots * slot_bytes;
        sums = region + region_bytes;
        factors = sums + sum_bytes(columns);
        is_over = factors + kMaxStepRows * 4;
        end = is_over + 16;
    }
};

inline constexpr int kLeastSlots = 2;  // products take two strips at a time

// What a pass of so many columns needs for inputs and attention, and slots in the rest. It does not
// fit where the end is beyond `shared_bytes`.
constexpr StepMemory divide_memory(const StepNeeds& needs,
                                   int shared_bytes,
                                   std::size_t pass_bytes,
                                   int columns) {
    constexpr int kLeastUnits = 32;
    constexpr int kMostSlots = 48;
    const int bytes_per_64 = columns * (needs.has_halves ? 128 : 80);
    // All inputs where there is plenty of room, else at least those of the stream.
    const int whole = round_up_to((needs.most_inputs + 63) / 64, kLeastUnits) * bytes_per_64;
    const int cap = columns == 1 ? 64 * 1024 : 88 * 1024;
    const int n_columns = std::min(columns * needs.heads_per_kv, max_cuda_columns(needs.head_dim));
    const int needed = std::max({kLeastUnits * bytes_per_64, kDrawBytes,
                                 attention_bytes(needs.head_dim, n_columns) - sum_bytes(columns)});
    StepMemory memory{.slot_bytes = needs.slot_bytes};
    // The phases of very deep models leave less room.
    for (const int region : {std::max(needed, std::min(whole, cap)), needed}) {
        memory.region_bytes = round_up_to(region, kSlotAlignment);
        memory.n_slots = 0;
        memory.place(pass_bytes, columns);
        // Their barriers move the slots to the next line at most.
        const int n_slots = (shared_bytes - memory.end - kSlotAlignment) / (needs.slot_bytes + 16);
        memory.n_slots = std::max(kLeastSlots, std::min(kMostSlots, n_slots));
        memory.place(pass_bytes, columns);
        if (memory.end <= shared_bytes) {
            break;
        }
    }
    return memory;
}

// What a pass of a sequence takes at most: phases, rows, their rotations, layers and attention.
constexpr std::size_t most_pass_bytes(const StepNeeds& needs, int n_rows) {
    constexpr std::size_t kAttention = 6 * 1024;
    const auto layers = static_cast<std::size_t>(needs.n_layers);
    const auto phases = static_cast<std::size_t>(needs.phases_per_layer) * layers + 4;
    const auto rows = static_cast<std::size_t>(n_rows);
    const auto turns = static_cast<std::size_t>(needs.n_tables * needs.head_dim);
    return phases * sizeof(CudaPhase) + layers * sizeof(CudaLayer) +
           rows * (sizeof(CudaRow) + turns * sizeof(float)) + kAttention;
}

inline constexpr int kStaticStepBytes = 1024;  // at most, beside the memory that is divided

// The rows of the largest pass that the kernel computes on a device with so much shared memory for
// a block; 0: none.
constexpr int max_step_rows(const StepNeeds& needs, std::size_t shared_bytes) {
    const int room = static_cast<int>(shared_bytes) - kStaticStepBytes;
    for (const int n_rows : {kMaxStepRows, 8}) {
        bool fits = true;
        for (const int columns : {1, 8, 16}) {
            const std::size_t pass_bytes = most_pass_bytes(needs, std::min(n_rows, columns));
            fits = fits && (columns > n_rows ||
                            divide_memory(needs, room, pass_bytes, columns).end <= room);
        }
        if (fits) {
            return n_rows;
        }
    }
    return 0;
}

}  // namespace knap

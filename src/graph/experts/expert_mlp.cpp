#include "graph/experts/expert_mlp.h"

#include <algorithm>
#include <cstring>

#include "base/rounding.h"
#include "kernels/matmul/packed_rows.h"
#include "kernels/row_math.h"

namespace knap {
namespace {

// The rows of a block one after the other: where they are, or copies of them.
const std::byte* gather(const ExpertGroups& groups,
                        const ExpertBlock& block,
                        const std::byte* rows,
                        std::size_t n_bytes,
                        std::byte* copies) {
    const auto place = [&](int slot) {
        return rows + static_cast<std::size_t>(groups.row(slot)) * n_bytes;
    };
    if (block.n_slots == 1) {
        return place(block.first_slot);
    }
    for (int i = 0; i < block.n_slots; ++i) {
        std::memcpy(copies + static_cast<std::size_t>(i) * n_bytes, place(block.first_slot + i),
                    n_bytes);
    }
    return copies;
}

}  // namespace

const float* ExpertMatrix::bias_of(int expert) const {
    return bias != nullptr ? bias + std::ptrdiff_t{expert} * weight->matrix.n_out : nullptr;
}

ExpertMatrix expert_matrix(const ggml_tensor* weight, const ggml_tensor* bias) {
    return {.weight = weight != nullptr ? packed_weight(weight) : nullptr,
            .bias = bias != nullptr ? static_cast<const float*>(bias->data) : nullptr};
}

ExpertTiles::ExpertTiles(const ExpertGroups& groups,
                         int n_slots,
                         const ExpertMatrix& by,
                         int n_threads)
    : groups_(groups),
      n_blocks_(ExpertGroups::most_blocks(n_slots, by.weight->n_planes)),
      n_groups_(by.weight->matrix.n_groups()) {
    constexpr int kPerThread = 8;  // enough for one thread to help another
    const int n_all = n_groups_ * n_blocks_;
    tile_groups_ = std::clamp(n_all / (n_threads * kPerThread), 1, std::min(kMaxGroups, n_groups_));
}

int ExpertTiles::size() const {
    return n_blocks_ * steps_for(n_groups_, tile_groups_);
}

ExpertTile ExpertTiles::operator[](int i) const {
    const int n_steps = steps_for(n_groups_, tile_groups_);
    const auto block = static_cast<std::size_t>(i / n_steps);
    const int first_group = i % n_steps * tile_groups_;
    return {.block = block < groups_.blocks().size() ? groups_.blocks()[block] : ExpertBlock{},
            .first_group = first_group,
            .n_groups = std::min(tile_groups_, n_groups_ - first_group)};
}

void ExpertScratch::reserve(std::size_t row_bytes) {
    constexpr std::size_t kTile =
        std::size_t{ExpertTiles::kMaxGroups} * kGroupRows * ExpertGroups::kMaxSlots;
    inputs_.resize(std::max(inputs_.size(), row_bytes * ExpertGroups::kMaxSlots));
    numbers_.resize(2 * kTile);
}

std::size_t ExpertScratch::bytes() const {
    return inputs_.capacity() + numbers_.capacity() * sizeof(float);
}

float* ExpertScratch::ups() {
    return numbers_.data() + numbers_.size() / 2;
}

void ExpertMlp::run_gates(const ExpertGroups& groups,
                          const ExpertTile& tile,
                          const std::byte* inputs,
                          ExpertScratch& scratch,
                          std::byte* hidden) const {
    // No structured binding: with Clang before version 16 no lambda captures one.
    const ExpertBlock& block = tile.block;
    const int first_group = tile.first_group;
    const int n_groups = tile.n_groups;
    if (block.n_slots == 0) {
        return;
    }
    const std::byte* rows =
        gather(groups, block, inputs, row_bytes(gate.weight->matrix), scratch.inputs());
    const int width = n_groups * kGroupRows;
    const auto multiply = [&](const ExpertMatrix& by, float* out) {
        multiply_groups({.matrix = by.weight->plane(block.expert),
                         .bias = by.bias_of(block.expert),
                         .first_group = first_group,
                         .n_groups = n_groups,
                         .inputs = rows,
                         .n_rows = block.n_slots,
                         .out = out,
                         .width = width});
    };
    multiply(gate, scratch.gates());
    multiply(up, scratch.ups());
    const PackedMatrix& next = down.weight->matrix;
    gate_rows({.activation = activation,
               .gates = scratch.gates(),
               .ups = scratch.ups(),
               .width = width,
               .n_rows = block.n_slots,
               .down = next,
               .first_group = first_group,
               .out = hidden + static_cast<std::size_t>(block.first_slot) * row_bytes(next)});
}

void ExpertMlp::run_down(const ExpertGroups& groups,
                         const ExpertTile& tile,
                         const std::byte* hidden,
                         float* results) const {
    const auto& [block, first_group, n_groups] = tile;
    if (block.n_slots == 0) {
        return;
    }
    const PackedMatrix matrix = down.weight->plane(block.expert);
    const int first = first_group * kGroupRows;
    float* out = results + static_cast<std::ptrdiff_t>(block.first_slot) * matrix.n_out + first;
    multiply_groups(
        {.matrix = matrix,
         .bias = down.bias_of(block.expert),
         .first_group = first_group,
         .n_groups = n_groups,
         .inputs = hidden + static_cast<std::size_t>(block.first_slot) * row_bytes(matrix),
         .n_rows = block.n_slots,
         .out = out,
         .width = matrix.n_out});
    const int n = std::min(n_groups * kGroupRows, matrix.n_out - first);
    for (int i = 0; i < block.n_slots; ++i) {
        scale_row(groups.weight(block.first_slot + i), n,
                  out + static_cast<std::ptrdiff_t>(i) * matrix.n_out);
    }
}

void sum_experts(const ExpertGroups& groups,
                 const float* results,
                 int n_embd,
                 int row,
                 int first,
                 int n,
                 float* out) {
    const auto result = [&](int rank) {
        return results + static_cast<std::ptrdiff_t>(groups.slot(row, rank)) * n_embd + first;
    };
    std::copy_n(result(0), n, out);
    for (int rank = 1; rank < groups.n_used(); ++rank) {
        add_row(result(rank), n, out);
    }
}

}  // namespace knap

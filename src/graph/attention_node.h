// The sources of a node of our attention kernel, as plain numbers and pointers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "ggml.h"

#include "graph/attention_blocks.h"
#include "graph/chunk_copy.h"
#include "graph/tree_paths.h"
#include "kv/kv_store.h"
#include "model/config.h"

namespace knap {

// Sources of a node, in this order.
enum class AttentionSource {
    queries,
    mask,
    cached_keys,
    cached_values,
    key_scales,
    value_scales,
    runs,
    tree,
    count
};

// The number of chunks that a block may touch. Chunks begin at multiples of their size in the
// cache, so a second run that may begin anywhere (`moves`) may touch one more.
int count_chunks(const AttentionBlock& block, bool moves);

// A range of positions within one chunk: its first mask column and its cache rows.
struct Stretch {
    int column;
    int row;
    int count;  // 0 for chunks that a run does not touch
};

// A column of a KV head is one of the group's query heads in one row: column c is in row
// c / heads_per_kv.
struct AttentionNode {
    AttentionNode(const ggml_tensor* node, const ModelConfig& model_config);

    int n_columns() const { return block.n_rows * config.heads_per_kv(); }
    int row_of(int column) const { return column / config.heads_per_kv(); }
    // The offset of a column in a tensor [head_dim, n_heads, n_rows].
    std::ptrdiff_t column_offset(int kv_head, int column) const;
    const float* query(int kv_head, int column) const {
        return queries + column_offset(kv_head, column);
    }

    int n_chunks() const { return count_chunks(block, moves); }
    // Chunks of the first run, then those of the second.
    Stretch stretch(int chunk) const;
    const std::uint16_t* row_mask(int row, const Stretch& stretch) const {
        return mask + std::ptrdiff_t{row} * block.n_kv + stretch.column;
    }
    // True if a row attends to anything in a stretch; for a row of a tree, by position.
    bool sees(int row, const Stretch& stretch) const;
    // True if everything in the stretch that a row attends to is in the cache at its own position.
    bool lies_in_place(int row, const Stretch& stretch) const {
        return !tree || stretch.row + stretch.count <= tree->context() || tree->lies_in_place(row);
    }
    // The cached rows of a stretch, in cache order.
    ChunkRows rows(int kv_head, const Stretch& stretch) const;

    const ModelConfig& config;
    const float* queries;
    const std::uint16_t* mask;
    KvTensors cached;
    AttentionBlock block;
    bool moves = false;  // an input says where the second run begins
    std::optional<TreePaths> tree{};
};

}  // namespace knap

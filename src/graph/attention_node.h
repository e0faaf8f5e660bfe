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

// Chunks that a block may touch. Chunks are cut at multiples of their size in the cache, so where
// the second run may begin anywhere (it `moves`) it may touch one more.
int count_chunks(const AttentionBlock& block, bool moves);

// A stretch of positions within one chunk: where its columns of the mask begin, and its cache rows.
struct Stretch {
    int column;
    int row;
    int count;  // 0 for the chunks that a run happens not to touch
};

// A column of a KV head is (row, query head of the group): column c is row c / heads_per_kv.
struct AttentionNode {
    AttentionNode(const ggml_tensor* node, const ModelConfig& model_config);

    int n_columns() const { return block.n_rows * config.heads_per_kv(); }
    int row_of(int column) const { return column / config.heads_per_kv(); }
    // Where the numbers of a column lie in a tensor [head_dim, n_heads, n_rows].
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
    // Whether a row sees anything of a stretch; of a tree's row: of its positions.
    bool sees(int row, const Stretch& stretch) const;
    // Whether what a row sees of a stretch lies in the cache at its positions.
    bool lies_in_place(int row, const Stretch& stretch) const {
        return !tree || stretch.row + stretch.count <= tree->context() || tree->lies_in_place(row);
    }
    // The cached rows of a stretch, as they lie.
    ChunkRows rows(int kv_head, const Stretch& stretch) const;

    const ModelConfig& config;
    const float* queries;
    const std::uint16_t* mask;
    KvTensors cached;
    AttentionBlock block;
    bool moves = false;  // the second run begins where an input says
    std::optional<TreePaths> tree{};
};

}  // namespace knap

// Which cache rows each row of a pass attends to.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "graph/attention_blocks.h"
#include "graph/module_plan.h"

namespace knap {

// How the rows of a pass relate to the text before them and to each other. The rows of a pass are
// at cache rows first_row, first_row + 1, ...; `context` is the end of the text that all of them
// follow.
struct AttentionLayout {
    enum class Kind : std::uint8_t {
        // A row attends to every cache row up to and including its own.
        causal,
        // A row attends to the context and its own ancestors. Cache row context + k is row k of the
        // tree; earlier passes may have computed some of them.
        tree,
        // Groups of `branch_rows` rows, each of which continues the context separately: a row
        // attends to the context and the earlier rows of its branch (docs/methods.md, "Branch
        // attention").
        branches,
        // Row i stands for the committed row context + i: it attends to the cache rows before that
        // one, and to itself (docs/methods.md, "Replay").
        replay,
    };
    Kind kind = Kind::causal;
    int context = -1;                // -1: the cache's committed rows
    std::span<const int> parents{};  // tree: the parent of each row, before it; -1: the context
    int branch_rows = 0;             // branches

    // The end of the text that row `row` of the pass follows.
    int context_of(int row) const { return kind == Kind::replay ? context + row : context; }
};

// The number of ancestors of a row of a tree.
int tree_depth(std::span<const int> parents, int node);

// True if a pass of `n_rows` rows from cache row `first_row` on may have this layout, whose context
// must be known. The context of a causal pass matters only to windows.
bool is_valid_layout(const AttentionLayout& layout, int first_row, int n_rows, bool has_windows);

// The RoPE position of every row of the pass.
void fill_positions(const AttentionLayout& layout,
                    int first_row,
                    std::span<std::int32_t> positions);

// The mask value that hides a row: the bits of f16 -infinity.
inline constexpr std::uint16_t kHiddenBits = 0xfc00;

// Writes the mask of one block, f16 bits [n_kv, n_mask_rows()]: 0 where a row may attend, -infinity
// elsewhere. A window hides the rows of the context between its sinks and its recent rows. A cache
// row that is in both runs of the block is visible in only one of them.
void build_mask(const AttentionLayout& layout,
                int first_row,
                const std::optional<Window>& window,
                const AttentionBlock& block,
                std::span<std::uint16_t> mask);

}  // namespace knap

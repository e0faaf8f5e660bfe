// Which cache rows each row of a pass may see.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "graph/attention_blocks.h"
#include "graph/module_plan.h"

namespace knap {

// How the rows of a pass stand to the text before them and to one another. Rows of a pass lie at
// cache rows first_row, first_row + 1, ...; `context` is where the text that they all follow ends.
struct AttentionLayout {
    enum class Kind : std::uint8_t {
        // A row sees every cache row up to and including its own.
        causal,
        // A row sees the context and its own ancestors. Cache row context + k is row k of the tree;
        // earlier passes may have computed some of them.
        tree,
        // Runs of `branch_rows` rows, each a continuation of the context of its own: a row sees the
        // context and the earlier rows of its branch (methods 3.7).
        branches,
        // Row i stands in for the committed row context + i: it sees the cache rows before that
        // one, and itself (methods 3.19).
        replay,
    };
    Kind kind = Kind::causal;
    int context = -1;                // -1: the cache's committed rows
    std::span<const int> parents{};  // tree: of each of its rows, all before it; -1: the context
    int branch_rows = 0;             // branches

    // Where the text ends that row `row` of the pass follows.
    int context_of(int row) const { return kind == Kind::replay ? context + row : context; }
};

// How many ancestors a row of a tree has.
int tree_depth(std::span<const int> parents, int node);

// Whether a pass of `n_rows` rows from cache row `first_row` on may have this layout, its context
// known. The context of a plain causal pass matters to windows alone.
bool is_valid_layout(const AttentionLayout& layout, int first_row, int n_rows, bool has_windows);

// The RoPE position of every row of the pass.
void fill_positions(const AttentionLayout& layout,
                    int first_row,
                    std::span<std::int32_t> positions);

// What a mask holds where a row may not look: the bits of f16 -infinity.
inline constexpr std::uint16_t kHiddenBits = 0xfc00;

// Writes the mask of one block, f16 bits [n_kv, n_mask_rows()]: 0 where a row may look, -infinity
// elsewhere. A window hides the rows of the context between its sinks and its recent rows. A cache
// row that both runs of the block hold is shown in one of them.
void build_mask(const AttentionLayout& layout,
                int first_row,
                const std::optional<Window>& window,
                const AttentionBlock& block,
                std::span<std::uint16_t> mask);

}  // namespace knap

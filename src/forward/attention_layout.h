// Which cache rows each row of a pass attends to.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "forward/module_plan.h"

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

// Calls visit(begin, end) for the runs of cache rows that row `row` of a pass from cache row
// `first_row` on attends to, its own included: disjoint runs, some of which may be empty. A window
// hides the rows of the context between its sinks and its recent rows.
template <typename Visit>
void for_each_visible_run(const AttentionLayout& layout,
                          const std::optional<Window>& window,
                          int first_row,
                          int row,
                          Visit visit) {
    const int own = first_row + row;
    // A causal pass may go over rows that were committed before.
    const int context = std::min(layout.context_of(row), own + 1);
    if (window) {
        const int end_of_sinks = std::min(window->sinks, context);
        visit(0, end_of_sinks);
        visit(std::max(end_of_sinks, context - window->recent), context);
    } else {
        visit(0, context);
    }
    switch (layout.kind) {
        case AttentionLayout::Kind::causal:
            visit(context, own + 1);
            return;
        case AttentionLayout::Kind::tree:
            for (int node = own - context; node >= 0;
                 node = layout.parents[static_cast<std::size_t>(node)]) {
                visit(context + node, context + node + 1);
            }
            return;
        case AttentionLayout::Kind::branches:
            visit(own - row % layout.branch_rows, own + 1);
            return;
        case AttentionLayout::Kind::replay:
            visit(own, own + 1);
            return;
    }
}

}  // namespace knap

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

// The RoPE position of a row of the pass.
int position_of(const AttentionLayout& layout, int first_row, int row);

// What the attentions of some layers see of the rows before them.
struct AttentionScope {
    std::optional<Window> window{};  // of the plan; none: all
    int own_window = 0;              // of the layers: positions, the row's own included; 0: all

    bool operator==(const AttentionScope&) const = default;
};

// Calls visit(begin, end) for the runs of cache rows that row `row` of a pass from cache row
// `first_row` on attends to, its own included: disjoint runs, some of which may be empty. A plan's
// window hides the rows of the context between its sinks and its recent rows; a layer's own hides
// every row that is too many positions back.
template <typename Visit>
void for_each_visible_run(const AttentionLayout& layout,
                          const AttentionScope& scope,
                          int first_row,
                          int row,
                          Visit visit) {
    const int own = first_row + row;
    // A causal pass may go over rows that were committed before.
    const int context = std::min(layout.context_of(row), own + 1);
    // The first position that the row sees. Rows of the context are at their positions.
    const int lowest =
        scope.own_window > 0 ? position_of(layout, first_row, row) + 1 - scope.own_window : 0;
    const auto visit_context = [&](int begin, int end) { visit(std::max(begin, lowest), end); };
    if (scope.window) {
        const int end_of_sinks = std::min(scope.window->sinks, context);
        visit_context(0, end_of_sinks);
        visit_context(std::max(end_of_sinks, context - scope.window->recent), context);
    } else {
        visit_context(0, context);
    }
    switch (layout.kind) {
        case AttentionLayout::Kind::causal:
            visit_context(context, own + 1);
            return;
        case AttentionLayout::Kind::tree: {
            int position = position_of(layout, first_row, row);
            for (int node = own - context; node >= 0 && position >= lowest;
                 node = layout.parents[static_cast<std::size_t>(node)], --position) {
                visit(context + node, context + node + 1);
            }
            return;
        }
        case AttentionLayout::Kind::branches: {
            // The first row of a branch is at the position after the context.
            const int n_hidden = std::max(0, lowest - layout.context);
            visit(own - row % layout.branch_rows + n_hidden, own + 1);
            return;
        }
        case AttentionLayout::Kind::replay:
            visit(own, own + 1);
            return;
    }
}

}  // namespace knap

#include "support/naive_layout.h"

#include <algorithm>

namespace knap::test {
namespace {

using Kind = AttentionLayout::Kind;

bool is_ancestor_or_self(const std::vector<int>& parents, int node, int candidate) {
    return node >= 0 &&
           (node == candidate ||
            is_ancestor_or_self(parents, parents[static_cast<std::size_t>(node)], candidate));
}

// The position that row `row` of the pass stands for. Rows of a tree before the pass have negative
// numbers.
int naive_position(const AttentionLayout& layout, int first_row, int row) {
    const int own = first_row + row;
    switch (layout.kind) {
        case Kind::causal:
            return own;
        case Kind::tree: {
            int position = layout.context;
            for (int node = layout.parents[static_cast<std::size_t>(own - layout.context)];
                 node >= 0; node = layout.parents[static_cast<std::size_t>(node)]) {
                ++position;
            }
            return position;
        }
        case Kind::branches:
            return layout.context + row % layout.branch_rows;
        case Kind::replay:
            return layout.context + row;
    }
    return 0;
}

}  // namespace

bool naively_sees(
    const AttentionLayout& layout, const AttentionScope& scope, int first_row, int row, int j) {
    const int own = first_row + row;
    const int context = layout.context + (layout.kind == Kind::replay ? row : 0);
    const auto is_recent = [&](int position) {
        return scope.own_window == 0 ||
               naive_position(layout, first_row, row) - position < scope.own_window;
    };
    if (j < context) {
        const std::optional<Window>& window = scope.window;
        const bool is_hidden = window && j >= window->sinks && j < context - window->recent;
        return !is_hidden && j <= own && is_recent(j);
    }
    switch (layout.kind) {
        case Kind::causal:
            return j <= own && is_recent(j);
        case Kind::tree:
            return is_ancestor_or_self({layout.parents.begin(), layout.parents.end()},
                                       own - layout.context, j - layout.context) &&
                   is_recent(naive_position(layout, first_row, j - first_row));
        case Kind::branches:
            return j >= first_row && j <= own &&
                   (j - first_row) / layout.branch_rows == row / layout.branch_rows &&
                   is_recent(naive_position(layout, first_row, j - first_row));
        case Kind::replay:
            return j == own;
    }
    return false;
}

RandomPass random_pass(std::mt19937& engine, Kind kind, int capacity, int max_rows) {
    RandomPass pass;
    pass.layout.kind = kind;
    pass.n_rows = random_between(engine, 1, max_rows);
    if (kind == Kind::branches) {
        pass.layout.branch_rows = random_between(engine, 1, std::min(8, pass.n_rows));
        pass.n_rows -= pass.n_rows % pass.layout.branch_rows;
    }
    // Often at an end of the cache, where runs are short or shifted back.
    const int room = capacity - pass.n_rows;
    const int place = random_between(engine, 0, 3);
    pass.first_row = place == 0   ? room - random_between(engine, 0, std::min(room, 3))
                     : place == 1 ? random_between(engine, 0, std::min(room, 80))
                                  : random_between(engine, 0, room);
    const int n_ahead = random_between(engine, 0, 1) * random_between(engine, 0, 10);
    pass.layout.context = std::max(0, pass.first_row - n_ahead);
    if (kind == Kind::replay) {
        pass.first_row = std::max(pass.first_row, pass.n_rows - 1);
        pass.layout.context = std::max(0, pass.first_row - pass.n_rows + 1 - n_ahead);
    }
    if (kind == Kind::tree) {
        // Narrow trees are deeper than the windows of layers.
        const int reach = random_between(engine, 1, 4);
        for (int k = 0; k < pass.first_row - pass.layout.context + pass.n_rows; ++k) {
            pass.parents.push_back(random_between(engine, std::max(-1, k - reach), k - 1));
        }
        pass.layout.parents = pass.parents;
    }
    return pass;
}

Window random_window(std::mt19937& engine) {
    return {.sinks = random_between(engine, 0, 2) * random_between(engine, 0, 80),
            .recent = random_between(engine, 0, 3) * random_between(engine, 0, 100)};
}

int random_between(std::mt19937& engine, int low, int high) {
    return low + static_cast<int>(engine() % static_cast<unsigned>(high - low + 1));
}

}  // namespace knap::test

#include "forward/attention_layout.h"

namespace knap {
namespace {

using Kind = AttentionLayout::Kind;

bool are_valid_parents(std::span<const int> parents) {
    for (std::size_t k = 0; k < parents.size(); ++k) {
        if (parents[k] < -1 || parents[k] >= static_cast<int>(k)) {
            return false;
        }
    }
    return true;
}

}  // namespace

int tree_depth(std::span<const int> parents, int node) {
    int n_ancestors = 0;
    while (parents[static_cast<std::size_t>(node)] >= 0) {
        node = parents[static_cast<std::size_t>(node)];
        ++n_ancestors;
    }
    return n_ancestors;
}

bool is_valid_layout(const AttentionLayout& layout, int first_row, int n_rows, bool has_windows) {
    if (layout.context < 0) {
        return false;
    }
    const int n_ahead = first_row - layout.context;  // rows of the round from earlier passes
    switch (layout.kind) {
        case Kind::causal:
            return n_ahead >= 0 || !has_windows;
        case Kind::tree:
            return n_ahead >= 0 && static_cast<int>(layout.parents.size()) == n_ahead + n_rows &&
                   are_valid_parents(layout.parents);
        case Kind::branches:
            return n_ahead >= 0 && layout.branch_rows > 0 && n_rows % layout.branch_rows == 0;
        case Kind::replay:
            return n_ahead >= n_rows - 1;  // no row is written over what another has to see
    }
    return false;
}

int position_of(const AttentionLayout& layout, int first_row, int row) {
    switch (layout.kind) {
        case Kind::causal:
            return first_row + row;
        case Kind::tree:
            return layout.context + tree_depth(layout.parents, first_row - layout.context + row);
        case Kind::branches:
            return layout.context + row % layout.branch_rows;
        case Kind::replay:
            return layout.context + row;
    }
    return 0;
}

void fill_positions(const AttentionLayout& layout,
                    int first_row,
                    std::span<std::int32_t> positions) {
    for (int row = 0; row < static_cast<int>(positions.size()); ++row) {
        positions[static_cast<std::size_t>(row)] = position_of(layout, first_row, row);
    }
}

}  // namespace knap

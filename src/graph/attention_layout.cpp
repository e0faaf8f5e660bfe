#include "graph/attention_layout.h"

#include <algorithm>

#include "base/error.h"

namespace knap {
namespace {

using Kind = AttentionLayout::Kind;

constexpr std::uint16_t kVisible = 0x0000;  // f16 0

bool are_valid_parents(std::span<const int> parents) {
    for (std::size_t k = 0; k < parents.size(); ++k) {
        if (parents[k] < -1 || parents[k] >= static_cast<int>(k)) {
            return false;
        }
    }
    return true;
}

// One row's line of a block's mask, everything hidden at first.
class MaskLine {
  public:
    MaskLine(const AttentionBlock& block, int sinks, std::span<std::uint16_t> columns)
        : block_(block), sinks_(sinks), columns_(columns) {
        std::fill(columns_.begin(), columns_.end(), kHiddenBits);
    }

    // Shows cache rows [begin, end): those below the window's sinks in their own run, the others in
    // that of the recent rows, so that none is shown twice where the runs overlap.
    void show(int begin, int end) {
        const int border = block_.n_sinks > 0 ? sinks_ : 0;
        const int first_sink = block_.sinks_follow ? block_.n_recent() : 0;
        const int first_recent = block_.sinks_follow ? 0 : block_.n_sinks;
        fill(begin, std::min({end, border, block_.n_sinks}), first_sink);
        fill(std::max({begin, border, block_.recent_row}), std::min(end, block_.end_of_recent()),
             first_recent - block_.recent_row);
    }

  private:
    // `offset` leads from a cache row to its column.
    void fill(int begin, int end, int offset) {
        if (begin < end) {
            std::fill(columns_.begin() + (begin + offset), columns_.begin() + (end + offset),
                      kVisible);
        }
    }

    const AttentionBlock& block_;
    int sinks_;
    std::span<std::uint16_t> columns_;
};

void show_context(const std::optional<Window>& window, int context, MaskLine& line) {
    if (!window) {
        line.show(0, context);
        return;
    }
    line.show(0, std::min(window->sinks, context));
    line.show(std::max(0, context - window->recent), context);
}

// Row `row` of the pass, at cache row `own`, and the rows of the round that it continues.
void show_round(const AttentionLayout& layout, int row, int own, int context, MaskLine& line) {
    switch (layout.kind) {
        case Kind::causal:
            line.show(context, own + 1);
            return;
        case Kind::tree:
            for (int node = own - context; node >= 0;
                 node = layout.parents[static_cast<std::size_t>(node)]) {
                line.show(context + node, context + node + 1);
            }
            return;
        case Kind::branches:
            line.show(own - row % layout.branch_rows, own + 1);
            return;
        case Kind::replay:
            line.show(own, own + 1);
            return;
    }
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

void fill_positions(const AttentionLayout& layout,
                    int first_row,
                    std::span<std::int32_t> positions) {
    for (int row = 0; row < static_cast<int>(positions.size()); ++row) {
        std::int32_t& position = positions[static_cast<std::size_t>(row)];
        switch (layout.kind) {
            case Kind::causal:
                position = first_row + row;
                break;
            case Kind::tree:
                position =
                    layout.context + tree_depth(layout.parents, first_row - layout.context + row);
                break;
            case Kind::branches:
                position = layout.context + row % layout.branch_rows;
                break;
            case Kind::replay:
                position = layout.context + row;
                break;
        }
    }
}

void build_mask(const AttentionLayout& layout,
                int first_row,
                const std::optional<Window>& window,
                const AttentionBlock& block,
                std::span<std::uint16_t> mask) {
    KNAP_ASSERT(mask.size() == block.mask_size(), "the mask covers the block");
    const auto n_columns = static_cast<std::size_t>(block.n_kv);
    for (int i = 0; i < block.n_rows; ++i) {
        const int row = block.first + i;
        const int own = first_row + row;
        // A causal pass may go over rows that were committed before.
        const int context = std::min(layout.context_of(row), own + 1);
        MaskLine line(block, window ? window->sinks : 0,
                      mask.subspan(static_cast<std::size_t>(i) * n_columns, n_columns));
        show_context(window, context, line);
        show_round(layout, row, own, context, line);
    }
    // Padding looks where the last row does: nothing else is sure to be a number.
    for (int i = block.n_rows; i < block.n_mask_rows(); ++i) {
        const auto last = mask.subspan(static_cast<std::size_t>(block.n_rows - 1) * n_columns);
        std::copy_n(
            last.begin(), n_columns,
            mask.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(i) * n_columns));
    }
}

}  // namespace knap

#include "graph/attention/attention_mask.h"

#include <algorithm>

#include "base/error.h"

namespace knap {
namespace {

constexpr std::uint16_t kVisible = 0x0000;  // f16 0

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

}  // namespace

void build_mask(const AttentionLayout& layout,
                int first_row,
                const AttentionScope& scope,
                const AttentionBlock& block,
                std::span<std::uint16_t> mask) {
    KNAP_ASSERT(mask.size() == block.mask_size(), "the mask covers the block");
    const auto n_columns = static_cast<std::size_t>(block.n_kv);
    for (int i = 0; i < block.n_rows; ++i) {
        MaskLine line(block, scope.window ? scope.window->sinks : 0,
                      mask.subspan(static_cast<std::size_t>(i) * n_columns, n_columns));
        for_each_visible_run(layout, scope, first_row, block.first + i,
                             [&](int begin, int end) { line.show(begin, end); });
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

#include "graph/attention_layout.h"

#include <algorithm>
#include <bit>

#include "knap/types.h"

#include "base/error.h"

namespace knap {
namespace {

constexpr std::uint16_t kVisible = 0x0000;  // f16 0
constexpr std::int64_t kScoreBytes = 40 << 20;
constexpr int kMaxBlockRows = 128;

int round_up(int n, int step) {
    return (n + step - 1) / step * step;
}

}  // namespace

int context_bucket(int n_kv, int capacity) {
    return std::min(round_up(n_kv, n_kv <= 1024 ? 64 : 256), capacity);
}

int max_block_rows(int n_kv, int n_score_heads) {
    if (n_score_heads == 0) {
        return kMaxUbatch;
    }
    const std::int64_t row_bytes =
        std::int64_t{n_kv} * n_score_heads * static_cast<std::int64_t>(sizeof(float));
    const auto fitting =
        static_cast<std::uint64_t>(std::max<std::int64_t>(1, kScoreBytes / row_bytes));
    return static_cast<int>(std::min<std::uint64_t>(std::bit_floor(fitting), kMaxBlockRows));
}

int max_pass_rows(int n_kv, int n_score_heads, int n_ubatch) {
    return std::min(n_ubatch, kMaxBlocks * max_block_rows(n_kv, n_score_heads));
}

void cut_into_blocks(int first_row,
                     int n_rows,
                     int n_score_heads,
                     int capacity,
                     std::vector<AttentionBlock>& blocks) {
    const int step = max_block_rows(context_bucket(first_row + n_rows, capacity), n_score_heads);
    blocks.clear();
    for (int first = 0; first < n_rows; first += step) {
        const int count = std::min(step, n_rows - first);
        blocks.push_back({first, count, context_bucket(first_row + first + count, capacity)});
    }
}

void build_mask(AttentionLayout layout,
                int first_row,
                const AttentionBlock& block,
                std::span<std::uint16_t> mask) {
    KNAP_ASSERT(layout == AttentionLayout::causal, "every layout has a branch here");
    KNAP_ASSERT(mask.size() == block.mask_size(), "the mask covers the block");
    for (int row = 0; row < block.n_rows; ++row) {
        auto line =
            mask.subspan(static_cast<std::size_t>(row) * static_cast<std::size_t>(block.n_kv),
                         static_cast<std::size_t>(block.n_kv));
        const auto n_visible = first_row + block.first + row + 1;
        std::fill_n(line.begin(), n_visible, kVisible);
        std::fill(line.begin() + n_visible, line.end(), kHiddenBits);
    }
}

}  // namespace knap

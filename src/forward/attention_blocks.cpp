#include "forward/attention_blocks.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>

#include "knap/types.h"

#include "base/error.h"
#include "base/rounding.h"
#include "kernels/attention/attention.h"

namespace knap {
namespace {

static_assert(kRunStep % kAttentionStep == 0 && kAttentionChunk % kRunStep == 0,
              "the kernel reads whole runs");

constexpr std::int64_t kScoreBytes = 40 << 20;
constexpr int kMaxBlockRows = 128;

// Rows of the recent run: the window wherever it begins, then `n_round` rows of the round.
int recent_rows(const Window& window, int n_round, int step) {
    const int slack = step - 1;  // the run begins at a multiple of its step
    return round_up(window.recent + slack + std::max(kRoundRows, n_round), kRunStep);
}

int bucket_step(int n_kv, int step) {
    constexpr int kLongStep = 256;
    constexpr int kShortContext = 1024;
    return n_kv <= kShortContext ? step : kLongStep;
}

// Calls add(first, count) for runs of at most `step` rows.
template <typename Add>
void for_each_run(int n_rows, int step, Add add) {
    for (int first = 0; first < n_rows; first += step) {
        add(first, std::min(step, n_rows - first));
    }
}

// A few rows, as many of those that read as much of the cache together as a block has columns.
void cut_exactly(const BlockCut& cut, std::vector<AttentionBlock>& blocks) {
    const BlockRules& rules = cut.rules;
    for (int row = 0; row < cut.n_rows; ++row) {
        const int n_kv = context_bucket(cut.first_row + row + 1, cut.capacity, rules.step);
        if (blocks.empty() || blocks.back().n_kv != n_kv ||
            blocks.back().n_rows == rules.exact_columns) {
            blocks.push_back({.first = row, .n_kv = n_kv});
        }
        AttentionBlock& block = blocks.back();
        ++block.n_rows;
        block.n_padding = rules.exact_padding(block.n_rows, n_kv);
    }
}

// A window as one run: its recent rows, those of the round, and a copy of the sinks. A short
// context is all there is from row 0 on. None where the cache ends too early for a copy.
std::optional<AttentionBlock> one_run(const BlockCut& cut, const Window& window, int context) {
    const int step = cut.rules.step;
    const int begin = round_down(std::max(0, context - window.recent), step);
    const int n_sinks = begin > 0 && window.sinks > 0 ? kCopiedSinks : 0;
    const int end_of_round = std::max(cut.first_row + cut.n_rows, context + kRoundRows);
    const int end = round_up(end_of_round + n_sinks, step);
    if (window.sinks > kCopiedSinks || (n_sinks > 0 && end > cut.capacity)) {
        return std::nullopt;
    }
    const int n_kv = std::min(end, cut.capacity) - begin;
    return AttentionBlock{.n_rows = cut.n_rows,
                          .n_kv = n_kv,
                          .n_sinks = n_sinks,
                          .recent_row = begin,
                          .sinks_follow = n_sinks > 0,
                          .n_padding = cut.rules.padding(cut.n_rows, n_kv)};
}

}  // namespace

int context_bucket(int n_kv, int capacity, int step) {
    return std::min(round_up(n_kv, bucket_step(n_kv, step)), capacity);
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

void cut_into_blocks(const BlockCut& cut, std::vector<AttentionBlock>& blocks) {
    const int step = cut.rules.step;
    const int bucket = context_bucket(cut.first_row + cut.n_rows, cut.capacity, step);
    const int max_rows = max_block_rows(bucket, cut.rules.n_score_heads);
    blocks.clear();
    if (cut.n_rows <= cut.rules.exact_rows) {
        cut_exactly(cut, blocks);
        return;
    }
    for_each_run(cut.n_rows, max_rows, [&](int first, int count) {
        const int n_kv = context_bucket(cut.first_row + first + count, cut.capacity, step);
        blocks.push_back({.first = first,
                          .n_rows = count,
                          .n_kv = n_kv,
                          .n_padding = cut.rules.padding(cut.n_rows, n_kv)});
    });
}

void cut_into_own_window_blocks(const BlockCut& cut,
                                int own_window,
                                int context,
                                std::vector<AttentionBlock>& blocks) {
    cut_into_blocks(cut, blocks);
    if (cut.rules.exact_rows > 0) {
        return;  // blocks that are exact read the cache from its start
    }
    for (AttentionBlock& block : blocks) {
        const int lowest = std::min(cut.first_row + block.first, context);
        const int step = bucket_step(block.n_kv, cut.rules.step);
        const int begin = round_down(std::max(0, lowest + 1 - own_window), step);
        block.recent_row = begin;
        block.n_kv -= begin;
    }
}

void cut_into_window_blocks(const BlockCut& cut,
                            const Window& window,
                            int context,
                            std::vector<AttentionBlock>& blocks) {
    KNAP_ASSERT(window.sinks >= 0 && window.recent >= 0 && cut.capacity % kRunStep == 0,
                "runs are whole steps of the cache");
    if (const auto block = cut.rules.one_run ? one_run(cut, window, context) : std::nullopt) {
        blocks.assign(1, *block);
        return;
    }
    const int step = cut.rules.step;
    const int end = cut.first_row + cut.n_rows;
    const int bucket = context_bucket(end, cut.capacity, step);
    const int n_sinks = std::min(round_up(window.sinks, kRunStep), bucket);
    const int most = std::min(bucket, n_sinks + recent_rows(window, end - context, step));
    const int begin = round_down(std::max(0, context - window.recent), step);
    const int max_rows = max_block_rows(most, cut.rules.n_score_heads);
    blocks.clear();
    for_each_run(cut.n_rows, max_rows, [&](int first, int count) {
        const int block_end = cut.first_row + first + count;
        const int n_wanted = std::min(recent_rows(window, block_end - context, step),
                                      context_bucket(block_end, cut.capacity, step));
        const int n_recent = std::min(round_up(n_sinks + n_wanted, step) - n_sinks, cut.capacity);
        blocks.push_back({.first = first,
                          .n_rows = count,
                          .n_kv = n_sinks + n_recent,
                          .n_sinks = n_sinks,
                          .recent_row = std::min(begin, cut.capacity - n_recent),
                          .n_padding = cut.rules.padding(cut.n_rows, n_sinks + n_recent)});
    });
}

}  // namespace knap

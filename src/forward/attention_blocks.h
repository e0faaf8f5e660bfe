// Splits the rows of a pass into blocks that attend together, and determines the cache rows that a
// block reads.
//
// If attention stores its scores, those of a block take n_kv x n_rows x n_heads floats, so long
// contexts are split into small blocks. A block ends at the last cache row that its own rows can
// attend to, so a prompt does not pay for the upper triangle. If attention stores no scores
// (`n_score_heads` is 0), a pass is one block.
//
// A block with a window reads two runs of cache rows: its sinks, and its recent rows with those of
// the round. Both begin and end at multiples of kRunStep, so the index of every cache row modulo
// kRunStep is the same wherever the runs are, and sums have the same order: with a given window, a
// row's bits depend only on the rows it attends to. If attention can only read one run, a copy of
// the sinks is kept behind the rows of the round (GgmlKvStore::repeat_first_rows).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "forward/module_plan.h"
#include "kv/page_pool.h"

namespace knap {

// The columns of a block's mask are the `n_sinks` rows from cache row 0 on, then the n_recent()
// rows from `recent_row` on; or the recent rows first, if a copy of the sinks follows them.
struct AttentionBlock {
    PageId page = 0;
    int first = 0;  // row of the pass
    int n_rows = 0;
    int n_kv = 0;  // cache rows that the block reads, rounded up to a bucket
    int n_sinks = 0;
    int recent_row = 0;
    bool sinks_follow = false;
    int n_padding = 0;  // extra rows that are computed but not read

    int n_columns() const { return n_rows + n_padding; }
    // The padding of a single row uses that row's mask; otherwise every column has its own.
    int n_mask_rows() const { return n_rows == 1 ? 1 : n_columns(); }
    int n_recent() const { return n_kv - n_sinks; }
    int end_of_recent() const { return recent_row + n_recent(); }  // a cache row
    std::size_t mask_size() const {
        return static_cast<std::size_t>(n_mask_rows()) * static_cast<std::size_t>(n_kv);
    }
    bool operator==(const AttentionBlock&) const = default;
};

inline constexpr int kRunStep = 64;

// Rounds a number of cache rows up, so that graphs are reused while the context grows: to multiples
// of `step`, which divides 256, for short contexts, and of 256 for longer ones. Never above
// `capacity`, which is itself a bucket.
int context_bucket(int n_kv, int capacity, int step = kRunStep);

// The most rows of a block at `n_kv` cache rows, so that its scores fit a fixed amount of memory.
int max_block_rows(int n_kv, int n_score_heads);
// The most rows of a pass ending at cache row `n_kv`: at most kMaxBlocks blocks.
int max_pass_rows(int n_kv, int n_score_heads, int n_ubatch);
inline constexpr int kMaxBlocks = 16;

// Requirements of the device and its attention.
struct BlockRules {
    int n_score_heads = 0;  // heads whose scores are stored at once; 0: none are
    int step = kRunStep;    // cache rows are read in multiples of it
    // A single row that reads at least this many cache rows is padded to two; 0: never. GPUs have a
    // faster kernel for two rows than for one.
    int pad_from = 0;
    bool one_run = false;  // sinks are copied, so that a window is one run
    // At full attention, passes of up to this many rows are bit-identical to single-row passes:
    // their blocks have `exact_columns` columns, and the cache rows that a block reads depend only
    // on the positions of its rows. This matters on GPUs, where the shape selects the kernel. 0:
    // not required.
    int exact_rows = 0;
    int exact_columns = 0;

    // The padding of a block in a pass of `n_rows` rows.
    int padding(int n_rows, int n_kv) const {
        return pad_from > 0 && n_rows == 1 && n_kv >= pad_from ? 1 : 0;
    }
    // The padding of a block of `n_rows` rows in a pass that is exact.
    int exact_padding(int n_rows, int n_kv) const {
        return exact_columns == 1 ? padding(n_rows, n_kv) : exact_columns - n_rows;
    }
    // The most blocks of such a pass: later rows may read more of the cache than earlier ones.
    int max_exact_blocks() const {
        return exact_columns == 1 ? exact_rows : exact_rows > 0 ? 2 : 0;
    }
};

// The rows to split: rows [0, n_rows) of a run, at cache rows first_row, first_row + 1, ...
struct BlockCut {
    int first_row = 0;
    int n_rows = 0;
    int capacity = 0;  // of a page
    BlockRules rules{};
};

// Blocks of full attention. Overwrites `blocks`.
void cut_into_blocks(const BlockCut& cut, std::vector<AttentionBlock>& blocks);

// Blocks of full attention in layers with a window of their own: they begin where the window of
// their first row does, rounded down, further for long contexts, so that graphs are reused. A row
// sums what it sees in the same order wherever its block begins. Rows are at positions from
// `context` on, or at those of their cache rows.
void cut_into_own_window_blocks(const BlockCut& cut,
                                int own_window,
                                int context,
                                std::vector<AttentionBlock>& blocks);

// Blocks of windowed attention. Every row follows a context of at least `context` rows. Once the
// context is longer than the window, the length of a run depends neither on the end of the context
// nor on the rows of the round, up to kRoundRows of them. So one graph serves every step, or every
// step until the recent rows have moved by kRunStep.
void cut_into_window_blocks(const BlockCut& cut,
                            const Window& window,
                            int context,
                            std::vector<AttentionBlock>& blocks);
inline constexpr int kRoundRows = 32;
// The most sinks that are copied: windows with more sinks read two runs.
inline constexpr int kCopiedSinks = kRunStep;

}  // namespace knap

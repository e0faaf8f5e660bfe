// How the rows of a pass are cut into blocks that attend together, and which cache rows a block
// reads.
//
// Where attention holds its scores, those of a block take n_kv x n_rows x n_heads floats, so long
// contexts are cut into small blocks; and a block ends at the last cache row that its own rows can
// see, so a prompt does not pay for the square above its diagonal. Where attention holds no scores
// (`n_score_heads` is 0) a pass is one block.
//
// A block with a window reads two runs of cache rows: its sinks, and its recent rows with those of
// the round. Both begin and end at multiples of kRunStep, so every cache row keeps its place modulo
// kRunStep wherever the runs lie, and sums are taken in the same order: with a given window, a
// row's bits depend on what it sees alone. Where attention can only read one run, a copy of the
// sinks is kept behind the rows of the round (KvStore::repeat_first_rows).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "graph/module_plan.h"

namespace knap {

// The columns of a block's mask are its `n_sinks` rows from cache row 0 on, then the
// `n_kv - n_sinks` rows from `recent_row` on; or the other way round, where a copy of the sinks
// follows those.
struct AttentionBlock {
    int first = 0;  // row of the pass
    int n_rows = 0;
    int n_kv = 0;  // cache rows that the block reads, rounded up to a bucket
    int n_sinks = 0;
    int recent_row = 0;
    bool sinks_follow = false;
    int n_padding = 0;  // rows more that the attention computes, which nobody reads

    int n_columns() const { return n_rows + n_padding; }
    // What pads a single row looks where it does; otherwise every column has a line of its own.
    int n_mask_rows() const { return n_rows == 1 ? 1 : n_columns(); }
    int n_recent() const { return n_kv - n_sinks; }
    int end_of_recent() const { return recent_row + n_recent(); }  // a cache row
    std::size_t mask_size() const {
        return static_cast<std::size_t>(n_mask_rows()) * static_cast<std::size_t>(n_kv);
    }
    bool operator==(const AttentionBlock&) const = default;
};

inline constexpr int kRunStep = 64;

// Rounds a number of cache rows up, so that graphs repeat while the context grows: in steps of
// `step`, which divides 256, while that is a large part of the context, of 256 beyond. Never above
// `capacity`, which is itself a bucket.
int context_bucket(int n_kv, int capacity, int step = kRunStep);

// Most rows of one block at `n_kv` cache rows, so that its scores stay within a fixed memory.
int max_block_rows(int n_kv, int n_score_heads);
// Most rows of one pass ending at cache row `n_kv`: at most kMaxBlocks blocks.
int max_pass_rows(int n_kv, int n_score_heads, int n_ubatch);
inline constexpr int kMaxBlocks = 16;

// What the device and its attention want of blocks.
struct BlockRules {
    int n_score_heads = 0;  // heads whose scores are held at once; 0: none are
    int step = kRunStep;    // cache rows are read in whole numbers of it
    // A single row that reads so many cache rows or more is padded to two; 0: never. GPUs have a
    // faster kernel for two rows than for one.
    int pad_from = 0;
    bool one_run = false;  // a window's sinks are copied, so that its rows are one run
    // At full attention a pass of up to so many rows gives each the bits that it has in a pass of
    // its own: its blocks have `exact_columns` columns, and what a block reads of the cache follows
    // from where its rows lie. GPUs compute as the shape says. 0: nobody counts on it.
    int exact_rows = 0;
    int exact_columns = 0;

    // Of a block of a pass of `n_rows` rows.
    int padding(int n_rows, int n_kv) const {
        return pad_from > 0 && n_rows == 1 && n_kv >= pad_from ? 1 : 0;
    }
    // Of a block of `n_rows` rows of a pass that is exact.
    int exact_padding(int n_rows, int n_kv) const {
        return exact_columns == 1 ? padding(n_rows, n_kv) : exact_columns - n_rows;
    }
    // Most blocks of such a pass: rows may read more of the cache than those before them.
    int max_exact_blocks() const {
        return exact_columns == 1 ? exact_rows : exact_rows > 0 ? 2 : 0;
    }
};

// What blocks are cut from: rows [0, n_rows) of a pass, at cache rows first_row, first_row + 1, ...
struct BlockCut {
    int first_row = 0;
    int n_rows = 0;
    int capacity = 0;  // of the cache
    BlockRules rules{};
};

// Blocks of full attention; `blocks` is overwritten.
void cut_into_blocks(const BlockCut& cut, std::vector<AttentionBlock>& blocks);

// Blocks of windowed attention. Every row follows a context of at least `context` rows. The length
// of a run does not depend on where the context ends once it is longer than the window, nor on the
// rows of the round up to kRoundRows of them: one graph then serves every step, or every one until
// the recent rows have moved by a step.
void cut_into_window_blocks(const BlockCut& cut,
                            const Window& window,
                            int context,
                            std::vector<AttentionBlock>& blocks);
inline constexpr int kRoundRows = 32;
// Sinks that are copied: windows with more of them read two runs.
inline constexpr int kCopiedSinks = kRunStep;

}  // namespace knap

// Which cache rows each row of a pass may see, and how the rows are cut into blocks that attend
// together.
//
// Where attention holds its scores, those of a block take n_kv x n_rows x n_heads floats, so long
// contexts are cut into small blocks; and a block ends at the last cache row that its own rows can
// see, so a prompt does not pay for the square above its diagonal. Where attention holds no scores
// (`n_score_heads` is 0) a pass is one block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace knap {

// causal: row i of a pass sees every cache row up to and including its own.
enum class AttentionLayout : std::uint8_t { causal };

struct AttentionBlock {
    int first = 0;  // row of the pass
    int n_rows = 0;
    int n_kv = 0;  // cache rows that the block reads, rounded up to a bucket

    bool operator==(const AttentionBlock&) const = default;
    std::size_t mask_size() const {
        return static_cast<std::size_t>(n_rows) * static_cast<std::size_t>(n_kv);
    }
};

// Rounds a number of cache rows up, so that graphs repeat while the context grows: in steps of 64
// while that is a large part of the context, of 256 beyond. Never above `capacity`, which is itself
// a bucket.
int context_bucket(int n_kv, int capacity);

// Most rows of one block at `n_kv` cache rows, so that its scores stay within a fixed memory.
int max_block_rows(int n_kv, int n_score_heads);
// Most rows of one pass ending at cache row `n_kv`: at most kMaxBlocks blocks.
int max_pass_rows(int n_kv, int n_score_heads, int n_ubatch);
inline constexpr int kMaxBlocks = 16;

// Cuts rows [0, n_rows) of a pass that starts at cache row `first_row`; `blocks` is overwritten.
void cut_into_blocks(int first_row,
                     int n_rows,
                     int n_score_heads,
                     int capacity,
                     std::vector<AttentionBlock>& blocks);

// What a mask holds where a row may not look: the bits of f16 -infinity.
inline constexpr std::uint16_t kHiddenBits = 0xfc00;

// Writes the mask of one block, f16 bits [n_kv, n_rows]: 0 where a row may look, -infinity
// elsewhere.
void build_mask(AttentionLayout layout,
                int first_row,
                const AttentionBlock& block,
                std::span<std::uint16_t> mask);

}  // namespace knap

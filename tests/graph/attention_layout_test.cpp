#include "graph/attention_layout.h"

#include <numeric>

#include <gtest/gtest.h>

namespace knap {
namespace {

TEST(ContextBucket, CoversTheRowsInStepsThatGrow) {
    EXPECT_EQ(context_bucket(1, 8448), 64);
    EXPECT_EQ(context_bucket(64, 8448), 64);
    EXPECT_EQ(context_bucket(65, 8448), 128);
    EXPECT_EQ(context_bucket(1024, 8448), 1024);
    EXPECT_EQ(context_bucket(1025, 8448), 1280);
    EXPECT_EQ(context_bucket(8448, 8448), 8448);
    EXPECT_EQ(context_bucket(90, 100), 100) << "never above the capacity";
}

TEST(Blocks, CoverEveryRowOnceAndReachItsOwnCacheRow) {
    for (const int first_row : {0, 1, 63, 64, 500, 7900}) {
        for (const int n_rows : {1, 2, 64, 127, 128, 129, 300, 512}) {
            std::vector<AttentionBlock> blocks;
            cut_into_blocks(first_row, n_rows, 9, 8448, blocks);
            int next = 0;
            for (const AttentionBlock& block : blocks) {
                EXPECT_EQ(block.first, next);
                EXPECT_GE(block.n_kv, first_row + block.first + block.n_rows);
                next += block.n_rows;
            }
            EXPECT_EQ(next, n_rows);
            EXPECT_LE(blocks.size(), static_cast<std::size_t>(kMaxBlocks));
        }
    }
}

TEST(Blocks, KeepScoresWithinAFixedMemory) {
    for (const int n_heads : {1, 9, 32, 64}) {
        for (const int n_kv : {64, 1024, 8448, 131072}) {
            const int rows = max_block_rows(n_kv, n_heads);
            ASSERT_GE(rows, 1);
            if (rows > 1) {
                EXPECT_LE(std::int64_t{rows} * n_kv * n_heads * 4, 40 << 20);
            }
        }
    }
}

TEST(Mask, CausalEqualsTheNaiveOne) {
    constexpr std::uint16_t kHidden = 0xfc00;
    for (const int first_row : {0, 5, 60}) {
        const AttentionBlock block{.first = 3, .n_rows = 7, .n_kv = 128};
        std::vector<std::uint16_t> mask(block.mask_size(), 0x1234);
        build_mask(AttentionLayout::causal, first_row, block, mask);
        for (int row = 0; row < block.n_rows; ++row) {
            for (int column = 0; column < block.n_kv; ++column) {
                const std::uint16_t expected =
                    column <= first_row + block.first + row ? 0 : kHidden;
                ASSERT_EQ(mask[static_cast<std::size_t>(row * block.n_kv + column)], expected)
                    << "row " << row << ", column " << column;
            }
        }
    }
}

}  // namespace
}  // namespace knap

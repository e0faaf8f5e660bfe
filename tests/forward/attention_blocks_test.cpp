#include "forward/attention_blocks.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "support/naive_layout.h"

namespace knap::attention_blocks_test {
namespace {

TEST(ContextBucket, CoversTheRowsInGrowingSteps) {
    EXPECT_EQ(context_bucket(1, 8448), 64);
    EXPECT_EQ(context_bucket(64, 8448), 64);
    EXPECT_EQ(context_bucket(65, 8448), 128);
    EXPECT_EQ(context_bucket(1024, 8448), 1024);
    EXPECT_EQ(context_bucket(1025, 8448), 1280);
    EXPECT_EQ(context_bucket(8448, 8448), 8448);
    EXPECT_EQ(context_bucket(90, 100), 100) << "never above the capacity";
    EXPECT_EQ(context_bucket(1, 8448, 256), 256) << "as the device wants it";
    EXPECT_EQ(context_bucket(257, 8448, 256), 512);
}

TEST(Blocks, CoverEveryRowOnceAndReachItsOwnCacheRow) {
    for (const int first_row : {0, 1, 63, 64, 500, 7900}) {
        for (const int n_rows : {1, 2, 64, 127, 128, 129, 300, 512}) {
            std::vector<AttentionBlock> blocks;
            cut_into_blocks({first_row, n_rows, 8448, {.n_score_heads = 9}}, blocks);
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

TEST(Blocks, KeepScoresWithinAMemoryLimit) {
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

TEST(WindowBlocks, CoverEveryVisibleRowAndStayWithinTheCache) {
    std::mt19937 engine(5);
    for (int trial = 0; trial < 3000; ++trial) {
        const int step = test::random_between(engine, 0, 1) == 0 ? kRunStep : 256;
        const int capacity = step * test::random_between(engine, 1, 40);
        const BlockRules rules{.n_score_heads = test::random_between(engine, 0, 1) * 9,
                               .step = step,
                               .one_run = trial % 2 == 0};
        const int context = test::random_between(engine, 0, capacity - 1);
        const int n_rows =
            std::min(test::random_between(engine, 1, 200), (capacity - context + 1) / 2);
        const int first_row = test::random_between(engine, context, capacity - n_rows);
        const Window window{
            test::random_between(engine, 0, 1) * test::random_between(engine, 1, 300),
            test::random_between(engine, 0, 3) * test::random_between(engine, 0, 300)};
        std::vector<AttentionBlock> blocks;
        cut_into_window_blocks({first_row, n_rows, capacity, rules}, window, context, blocks);
        std::vector<AttentionBlock> full;
        cut_into_blocks({first_row, n_rows, capacity, rules}, full);
        ASSERT_LE(blocks.size(), full.size()) << "as many rows fit a pass as without windows";
        int next = 0;
        for (const AttentionBlock& block : blocks) {
            ASSERT_EQ(block.first, next);
            next += block.n_rows;
            const int end = first_row + next;
            // A single run that starts at row 0 includes the sinks.
            ASSERT_TRUE(block.n_sinks >= std::min(window.sinks, end) ||
                        (rules.one_run && block.recent_row == 0 && block.n_sinks == 0));
            ASSERT_LE(block.n_sinks, capacity);
            ASSERT_LE(block.recent_row, std::max(0, context - window.recent));
            ASSERT_GE(block.recent_row, 0);
            ASSERT_GE(block.end_of_recent(), end);
            ASSERT_LE(block.end_of_recent() + (block.sinks_follow ? block.n_sinks : 0), capacity);
            // The copy of the sinks is above the sinks themselves.
            ASSERT_TRUE(!block.sinks_follow || block.recent_row >= block.n_sinks);
            ASSERT_TRUE(block.n_sinks % kRunStep == 0 && block.n_kv % kRunStep == 0 &&
                        block.recent_row % kRunStep == 0);
            ASSERT_TRUE(block.n_kv % step == 0 || block.n_recent() == capacity);
        }
        ASSERT_EQ(next, n_rows);
    }
}

TEST(Blocks, PadASingleRowWhenTheContextIsLong) {
    const auto padding = [](int first_row, int n_rows) {
        std::vector<AttentionBlock> blocks;
        cut_into_blocks({first_row, n_rows, 16384, {.step = 256, .pad_from = 8192}}, blocks);
        return blocks.front().n_padding;
    };
    EXPECT_EQ(padding(7000, 1), 0);
    EXPECT_EQ(padding(8000, 1), 1);
    EXPECT_EQ(padding(8000, 2), 0);
    EXPECT_EQ((AttentionBlock{.n_rows = 1, .n_kv = 256, .n_padding = 1}.mask_size()), 256u);
}

TEST(Blocks, FewExactRowsReadTheSameInAnyPass) {
    BlockRules rules{.step = 256, .pad_from = 8192, .exact_rows = 4};
    for (const int exact_columns : {1, 4}) {
        rules.exact_columns = exact_columns;
        for (const int first_row : {0, 100, 253, 1021, 8189}) {
            for (int n_rows = 1; n_rows <= 4; ++n_rows) {
                std::vector<AttentionBlock> together;
                cut_into_blocks({first_row, n_rows, 16384, rules}, together);
                EXPECT_LE(static_cast<int>(together.size()), rules.max_exact_blocks());
                int next = 0;
                for (const AttentionBlock& block : together) {
                    EXPECT_EQ(block.first, next);
                    next += block.n_rows;
                    EXPECT_GE(block.n_columns(), exact_columns);
                    for (int row = block.first; row < next; ++row) {
                        std::vector<AttentionBlock> alone;
                        cut_into_blocks({first_row + row, 1, 16384, rules}, alone);
                        EXPECT_EQ(block.n_kv, alone.front().n_kv);
                        EXPECT_EQ(block.n_columns(), alone.front().n_columns());
                    }
                }
                EXPECT_EQ(next, n_rows);
            }
        }
    }
    std::vector<AttentionBlock> more;
    cut_into_blocks({253, 5, 16384, rules}, more);
    EXPECT_EQ(more, (std::vector<AttentionBlock>{{.n_rows = 5, .n_kv = 512}}));
}

TEST(WindowBlocks, DoNotGrowWithTheContext) {
    const Window window{16, 256};
    std::vector<AttentionBlock> first;
    cut_into_window_blocks({1000, 1, 8448, {.n_score_heads = 9}}, window, 1000, first);
    EXPECT_EQ(first[0].n_sinks, 64);
    EXPECT_EQ(first[0].n_recent(), 384);
    for (int context = 1000; context < 8192; ++context) {
        for (const int ahead : {0, 7, 31}) {
            std::vector<AttentionBlock> blocks;
            cut_into_window_blocks({context + ahead, 1, 8448, {.n_score_heads = 9}}, window,
                                   context, blocks);
            blocks[0].recent_row = first[0].recent_row;
            ASSERT_EQ(blocks, first) << context << " + " << ahead;
        }
    }
}

TEST(WindowBlocks, SingleRunEndsWithACopyOfTheSinks) {
    const BlockRules rules{.step = 256, .one_run = true};
    const auto block_at = [&](const Window& window, int context) {
        std::vector<AttentionBlock> blocks;
        cut_into_window_blocks({context, 1, 8192, rules}, window, context, blocks);
        return blocks.front();
    };
    const AttentionBlock one_run{.n_rows = 1,
                                 .n_kv = 1280,
                                 .n_sinks = kCopiedSinks,
                                 .recent_row = 1024,
                                 .sinks_follow = true};
    // 32 rows of the round and the sinks fit below row 2304 until the context has 2208 rows.
    for (int context = 2048; context <= 2208; ++context) {
        ASSERT_EQ(block_at({16, 1024}, context), one_run) << context;
    }
    EXPECT_EQ(block_at({16, 1024}, 2209).n_kv, 1536);
    EXPECT_EQ(block_at({16, 1024}, 1000), (AttentionBlock{.n_rows = 1, .n_kv = 1280}))
        << "a short context has its sinks in the run";
    EXPECT_EQ(block_at({0, 1024}, 2240).n_sinks, 0);
    EXPECT_FALSE(block_at({65, 1024}, 2048).sinks_follow) << "too many sinks";
    EXPECT_FALSE(block_at({16, 1024}, 8100).sinks_follow) << "no room behind the round";
}

TEST(WindowBlocks, ReadOnlyExistingRowsInEachRun) {
    std::vector<AttentionBlock> blocks;
    cut_into_window_blocks({100, 1, 8448, {.n_score_heads = 9}}, {5000, 3000}, 100, blocks);
    EXPECT_EQ(blocks[0].n_sinks, 128);
    EXPECT_EQ(blocks[0].n_recent(), 128);
}

}  // namespace
}  // namespace knap::attention_blocks_test

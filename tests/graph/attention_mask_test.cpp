#include "graph/attention/attention_mask.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/text.h"
#include "support/naive_layout.h"

namespace knap::test::attention_mask_test {
namespace {

using Kind = AttentionLayout::Kind;

// The columns of a block that hold cache row `j`.
std::vector<int> columns_of(const AttentionBlock& block, int j) {
    std::vector<int> columns;
    if (j < block.n_sinks) {
        columns.push_back(block.sinks_follow ? block.n_recent() + j : j);
    }
    if (j >= block.recent_row && j < block.end_of_recent()) {
        columns.push_back((block.sinks_follow ? 0 : block.n_sinks) + j - block.recent_row);
    }
    return columns;
}

std::string describe(const RandomPass& pass, const AttentionScope& scope) {
    const std::optional<Window>& window = scope.window;
    return concat("kind ", static_cast<int>(pass.layout.kind), ", context ", pass.layout.context,
                  ", rows ", pass.first_row, " + ", pass.n_rows, ", window ",
                  window ? window->sinks : -1, "+", window ? window->recent : -1, ", own window ",
                  scope.own_window);
}

// Every cache row is visible in exactly one column to the rows that attend to it, and in none to
// the others.
void expect_naive_mask(const RandomPass& pass,
                       const AttentionScope& scope,
                       const AttentionBlock& block,
                       int capacity) {
    std::vector<std::uint16_t> mask(block.mask_size(), 0x1234);
    build_mask(pass.layout, pass.first_row, scope, block, mask);
    for (int row = 0; row < block.n_rows; ++row) {
        const auto line = mask.begin() + row * block.n_kv;
        int n_seen = 0;
        for (int j = 0; j < capacity; ++j) {
            int n_visible = 0;
            for (const int column : columns_of(block, j)) {
                ASSERT_TRUE(line[column] == 0 || line[column] == kHiddenBits);
                n_visible += line[column] == 0 ? 1 : 0;
            }
            const bool sees =
                naively_sees(pass.layout, scope, pass.first_row, block.first + row, j);
            ASSERT_EQ(n_visible, sees ? 1 : 0)
                << describe(pass, scope) << ": row " << block.first + row << ", cache row " << j;
            n_seen += n_visible;
        }
        ASSERT_EQ(std::count(line, line + block.n_kv, 0), n_seen);
    }
}

class Masks : public ::testing::TestWithParam<Kind> {};

TEST_P(Masks, EqualTheNaiveMaskForAnyLayoutWindowAndCut) {
    std::mt19937 engine(7);
    constexpr int kCapacity = 512;
    for (int trial = 0; trial < 150; ++trial) {
        const RandomPass pass = random_pass(engine, GetParam(), kCapacity, 40);
        ASSERT_TRUE(is_valid_layout(pass.layout, pass.first_row, pass.n_rows, true));
        AttentionScope scope;
        if (trial % 3 != 0) {
            scope.window = random_window(engine);
        }
        if (trial % 5 < 2) {  // often shorter than a path of the tree
            scope.own_window = random_between(engine, 1, trial % 5 == 0 ? 6 : 200);
        }
        // With so many heads, blocks are small.
        const BlockRules rules{.n_score_heads = (trial % 2) * 3000, .one_run = trial % 4 == 0};
        const BlockCut cut{pass.first_row, pass.n_rows, kCapacity, rules};
        std::vector<AttentionBlock> blocks;
        if (scope.window) {
            cut_into_window_blocks(cut, *scope.window, pass.layout.context, blocks);
        } else {
            cut_into_blocks(cut, blocks);
        }
        for (const AttentionBlock& block : blocks) {
            expect_naive_mask(pass, scope, block, kCapacity);
        }
        if (HasFatalFailure()) {
            return;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Kinds,
                         Masks,
                         ::testing::Values(Kind::causal, Kind::tree, Kind::branches, Kind::replay));

TEST(Masks, CausalRowsBelowTheContextAttendToEarlierRows) {
    const AttentionLayout layout{.context = 40};
    const AttentionBlock block{.first = 0, .n_rows = 2, .n_kv = 64};
    std::vector<std::uint16_t> mask(block.mask_size());
    build_mask(layout, 10, {}, block, mask);
    EXPECT_EQ(std::count(mask.begin(), mask.begin() + 64, 0), 11);
    EXPECT_EQ(std::count(mask.begin() + 64, mask.end(), 0), 12);
}

TEST(Masks, PaddingAttendsToWhatTheLastRowDoes) {
    const AttentionBlock block{.first = 0, .n_rows = 2, .n_kv = 64, .n_padding = 2};
    std::vector<std::uint16_t> mask(block.mask_size(), 0x7e00);  // NaN
    build_mask({.context = 20}, 20, {}, block, mask);
    EXPECT_EQ(std::count(mask.begin(), mask.begin() + 64, 0), 21);
    for (const int padding : {2, 3}) {
        EXPECT_TRUE(std::equal(mask.begin() + 64, mask.begin() + 128, mask.begin() + 64 * padding));
    }
    EXPECT_EQ(AttentionBlock({.n_rows = 1, .n_kv = 64, .n_padding = 3}).mask_size(), 64u)
        << "a single row's line serves all";
}

TEST(Positions, FollowTheTextThatARowBelongsTo) {
    const auto positions = [](const AttentionLayout& layout, int first_row, int n_rows) {
        std::vector<std::int32_t> out(static_cast<std::size_t>(n_rows));
        fill_positions(layout, first_row, out);
        return out;
    };
    using Expected = std::vector<std::int32_t>;
    EXPECT_EQ(positions({.kind = Kind::causal, .context = 10}, 12, 3), (Expected{12, 13, 14}));
    const std::vector<int> parents{-1, 0, 0, 1, 3, -1};
    EXPECT_EQ(positions({.kind = Kind::tree, .context = 10, .parents = parents}, 10, 6),
              (Expected{10, 11, 11, 12, 13, 10}));
    EXPECT_EQ(positions({.kind = Kind::tree, .context = 10, .parents = parents}, 13, 3),
              (Expected{12, 13, 10}));
    EXPECT_EQ(positions({.kind = Kind::branches, .context = 10, .branch_rows = 2}, 15, 4),
              (Expected{10, 11, 10, 11}));
    EXPECT_EQ(positions({.kind = Kind::replay, .context = 10}, 20, 3), (Expected{10, 11, 12}));
}

TEST(Layouts, InvalidLayoutsAreRefused) {
    const std::vector<int> parents{-1, 0, 1};
    const std::vector<int> forward_parents{-1, 2, 1};
    const AttentionLayout tree{.kind = Kind::tree, .context = 10, .parents = parents};
    EXPECT_TRUE(is_valid_layout(tree, 10, 3, false));
    EXPECT_TRUE(is_valid_layout(tree, 12, 1, false));
    EXPECT_FALSE(is_valid_layout(tree, 10, 2, false)) << "parents of rows that are not there";
    EXPECT_FALSE(is_valid_layout(tree, 9, 3, false)) << "over its context";
    EXPECT_FALSE(is_valid_layout({.kind = Kind::tree, .context = 10, .parents = forward_parents},
                                 10, 3, false));
    EXPECT_FALSE(
        is_valid_layout({.kind = Kind::branches, .context = 10, .branch_rows = 2}, 10, 3, false));
    EXPECT_FALSE(is_valid_layout({.kind = Kind::branches, .context = 10}, 10, 3, false));
    EXPECT_TRUE(is_valid_layout({.kind = Kind::replay, .context = 10}, 12, 3, false));
    EXPECT_FALSE(is_valid_layout({.kind = Kind::replay, .context = 10}, 11, 3, false))
        << "over rows that it has to see";
    EXPECT_TRUE(is_valid_layout({.context = 10}, 3, 3, false));
    EXPECT_FALSE(is_valid_layout({.context = 10}, 3, 3, true)) << "a window follows the context";
    EXPECT_FALSE(is_valid_layout({}, 3, 3, false)) << "an unknown context";
}

}  // namespace
}  // namespace knap::test::attention_mask_test

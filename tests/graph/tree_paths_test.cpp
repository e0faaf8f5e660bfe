#include "graph/tree_paths.h"

#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace knap::tree_paths_test {
namespace {

using Places = std::vector<std::pair<int, int>>;  // position, cache row

// Rows 2, 3, ... of a tree after ten rows of context; its first two rows are from an earlier pass.
class TreePathsTest : public ::testing::Test {
  protected:
    TreePathsTest() : numbers_(static_cast<std::size_t>(TreePaths::n_numbers(16)), -7) {
        const std::vector<int> parents{-1, 0, 1, 0, 3, -1};
        TreePaths::write({.kind = AttentionLayout::Kind::tree, .context = 10, .parents = parents},
                         12, numbers_);
    }

    Places places(int row) const {
        Places out;
        TreePaths(numbers_).for_each(
            row, [&](int position, int cache_row) { out.emplace_back(position, cache_row); });
        return out;
    }

    std::vector<std::int32_t> numbers_;
};

TEST_F(TreePathsTest, PositionsFollowTheContextWithoutGaps) {
    EXPECT_EQ(TreePaths(numbers_).context(), 10);
    EXPECT_EQ(places(0), (Places{{12, 12}, {11, 11}, {10, 10}}));
    EXPECT_EQ(places(1), (Places{{11, 13}, {10, 10}}));
    EXPECT_EQ(places(2), (Places{{12, 14}, {11, 13}, {10, 10}}));
    EXPECT_EQ(places(3), (Places{{10, 15}}));
}

TEST_F(TreePathsTest, RowAttendsToTheContextAndItsPath) {
    const TreePaths paths(numbers_);
    EXPECT_EQ(paths.n_seen(0), 13);
    EXPECT_EQ(paths.n_seen(1), 12);
    EXPECT_EQ(paths.n_seen(2), 13);
    EXPECT_EQ(paths.n_seen(3), 11);
}

TEST_F(TreePathsTest, OnlyTheStartOfATreeIsInPlace) {
    const TreePaths paths(numbers_);
    EXPECT_TRUE(paths.lies_in_place(0));
    for (const int row : {1, 2, 3}) {
        EXPECT_FALSE(paths.lies_in_place(row)) << row;
    }
}

}  // namespace
}  // namespace knap::tree_paths_test

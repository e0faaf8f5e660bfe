#include "sampling/draft_tree.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace knap::draft_tree_test {
namespace {

using ::testing::ElementsAre;

std::vector<int> children(const DraftTree& tree, int parent) {
    std::vector<int> nodes;
    for (int child = tree.first_child(parent); child != kNoNode; child = tree.next_sibling(child)) {
        nodes.push_back(child);
    }
    return nodes;
}

//  pending - 0 - 2 - 5
//          |   - 4
//          - 1 - 3
DraftTree example() {
    DraftTree tree;
    tree.add(10, kPendingNode);
    tree.add(11, kPendingNode);
    tree.add(12, 0);
    tree.add(13, 1);
    tree.add(14, 0);
    tree.add(15, 2);
    return tree;
}

TEST(DraftTree, IsEmptyAtFirst) {
    const DraftTree tree;
    EXPECT_TRUE(tree.is_empty());
    EXPECT_EQ(tree.n_nodes(), 0);
    EXPECT_EQ(tree.max_depth(), 0);
    EXPECT_EQ(tree.first_child(kPendingNode), kNoNode);
    EXPECT_EQ(tree.drawn_from(kPendingNode), nullptr);
}

TEST(DraftTree, KnowsParentsDepthsAndTokens) {
    const DraftTree tree = example();
    EXPECT_EQ(tree.n_nodes(), 6);
    EXPECT_THAT(tree.tokens(), ElementsAre(10, 11, 12, 13, 14, 15));
    EXPECT_EQ(tree.parent(1), kPendingNode);
    EXPECT_EQ(tree.parent(5), 2);
    EXPECT_EQ(tree.depth(0), 1);
    EXPECT_EQ(tree.depth(3), 2);
    EXPECT_EQ(tree.depth(5), 3);
    EXPECT_EQ(tree.max_depth(), 3);
}

TEST(DraftTree, ListsChildrenInOrderOfIndex) {
    const DraftTree tree = example();
    EXPECT_THAT(children(tree, kPendingNode), ElementsAre(0, 1));
    EXPECT_THAT(children(tree, 0), ElementsAre(2, 4));
    EXPECT_THAT(children(tree, 1), ElementsAre(3));
    EXPECT_THAT(children(tree, 2), ElementsAre(5));
    EXPECT_THAT(children(tree, 5), ElementsAre());
}

TEST(DraftTree, IsAChainWhileEachNodeFollowsTheLast) {
    DraftTree tree;
    EXPECT_TRUE(tree.is_chain());
    tree.add(1, kPendingNode);
    tree.add(2, 0);
    tree.add(3, 1);
    EXPECT_TRUE(tree.is_chain());
    tree.add(4, 1);
    EXPECT_FALSE(tree.is_chain());
}

TEST(DraftTree, RemembersWhatChildrenWereDrawnFrom) {
    DraftTree tree = example();
    tree.set_drawn_from(0, {.tokens = {12, 14}, .probabilities = {0.75f, 0.25f}});
    tree.set_drawn_from(kPendingNode, {.tokens = {10, 11}, .probabilities = {0.5f, 0.5f}});
    ASSERT_NE(tree.drawn_from(0), nullptr);
    EXPECT_THAT(tree.drawn_from(0)->tokens, ElementsAre(12, 14));
    EXPECT_THAT(tree.drawn_from(0)->probabilities, ElementsAre(0.75f, 0.25f));
    EXPECT_THAT(tree.drawn_from(kPendingNode)->tokens, ElementsAre(10, 11));
    EXPECT_EQ(tree.drawn_from(1), nullptr);
}

TEST(DraftTree, ClearForgetsEverything) {
    DraftTree tree = example();
    tree.set_drawn_from(kPendingNode, {.tokens = {10}, .probabilities = {1.0f}});
    tree.clear();
    EXPECT_TRUE(tree.is_empty());
    EXPECT_TRUE(tree.is_chain());
    EXPECT_EQ(tree.max_depth(), 0);
    EXPECT_EQ(tree.first_child(kPendingNode), kNoNode);
    EXPECT_EQ(tree.drawn_from(kPendingNode), nullptr);
    tree.add(7, kPendingNode);
    EXPECT_THAT(children(tree, kPendingNode), ElementsAre(0));
    EXPECT_EQ(tree.drawn_from(0), nullptr);
}

TEST(DraftTree, KeepsItsMemoryWhenCleared) {
    DraftTree tree;
    const auto fill = [&tree] {
        tree.clear();
        tree.add(1, kPendingNode);
        tree.set_drawn_from(kPendingNode, {.tokens = {1, 2}, .probabilities = {0.5f, 0.5f}});
        return std::pair(tree.tokens().data(), tree.drawn_from(kPendingNode)->tokens.data());
    };
    const auto first = fill();
    EXPECT_EQ(fill(), first);
}

}  // namespace
}  // namespace knap::draft_tree_test

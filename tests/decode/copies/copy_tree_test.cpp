#include "decode/copies/copy_tree.h"

#include <map>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace knap::copy_tree_test {
namespace {

using Tokens = std::vector<Token>;
using ::testing::ElementsAre;

Tokens tokens_of(const std::vector<CopyNode>& nodes) {
    Tokens tokens;
    for (const CopyNode& node : nodes) {
        tokens.push_back(node.token);
    }
    return tokens;
}

std::vector<CopyNode> grow(const Tokens& text, const CopyTreeLimits& limits) {
    CopiedTexts texts;
    texts.begin(text);
    const CopyAcceptance acceptance;
    return grow_copy_tree(texts.find(), acceptance, acceptance, limits);
}

TEST(CopyTree, AChainRepeatsALoop) {
    const auto nodes = grow({1, 2, 3, 1, 2, 3}, {.max_nodes = 8});
    EXPECT_THAT(tokens_of(nodes), ElementsAre(1, 2, 3, 1, 2, 3, 1, 2));
    for (int i = 0; i < 8; ++i) {
        EXPECT_EQ(nodes[static_cast<std::size_t>(i)].parent, i - 1);
    }
}

TEST(CopyTree, ARightTokenLengthensItsMatch) {
    const CopyAcceptance acceptance;
    const auto nodes = grow({5, 1, 2, 3, 4, 9, 1, 2}, {.max_nodes = 3});
    double reached = 1;
    for (int i = 0; i < 3; ++i) {
        reached *= acceptance.at({.length = 2 + i});
        EXPECT_DOUBLE_EQ(nodes[static_cast<std::size_t>(i)].reached, reached);
    }
}

TEST(CopyTree, TheFirstTokenHasAnAcceptanceOfItsOwn) {
    const CopyAcceptance choices(CopiedText::choice);
    const CopyAcceptance structured(CopiedText::structured);
    CopiedTexts texts;
    texts.begin(Tokens{5, 1, 2, 3, 4, 9, 1, 2});
    const auto nodes = grow_copy_tree(texts.find(), choices, structured, {.max_nodes = 2});
    EXPECT_DOUBLE_EQ(nodes[0].reached, choices.at({.length = 2}));
    EXPECT_DOUBLE_EQ(nodes[1].reached, nodes[0].reached * structured.at({.length = 3}));
}

// 1 2 was followed by 3 twice and by 4 once.
TEST(CopyTree, BranchesWhereMatchesDisagree) {
    const Tokens text = {1, 2, 3, 8, 8, 1, 2, 4, 7, 7, 1, 2, 3, 8, 6, 1, 2};
    EXPECT_THAT(tokens_of(grow(text, {.max_nodes = 2, .width = 1})), ElementsAre(3, 8));
    const auto tree = grow(text, {.max_nodes = 16, .width = 2});
    std::map<Token, int> under_root;
    for (const CopyNode& node : tree) {
        under_root[node.token] += node.parent == kPendingNode ? 1 : 0;
    }
    EXPECT_EQ(under_root[3], 1);
    EXPECT_EQ(under_root[4], 1);
    EXPECT_EQ(tree.front().token, 3);
}

TEST(CopyTree, LeavesOutWhatIsNotLikelyEnough) {
    const Tokens text = {1, 2, 3, 8, 8, 1, 2, 4, 7, 7, 1, 2, 3, 8, 6, 1, 2};
    const auto all = grow(text, {.max_nodes = 32, .width = 3});
    const auto likely = grow(text, {.max_nodes = 32, .width = 3, .least_reached = 0.1});
    EXPECT_LT(likely.size(), all.size());
    for (const CopyNode& node : likely) {
        EXPECT_GE(node.reached, 0.1);
    }
}

// Any number of the first nodes is the best tree of that size.
TEST(CopyTree, NodesAreInTheOrderOfTheirProbability) {
    std::mt19937 random(2);
    for (int run = 0; run < 50; ++run) {
        Tokens text;
        for (int i = 0; i < 200; ++i) {
            text.push_back(static_cast<Token>(random() % 4));
        }
        const auto nodes = grow(text, {.max_nodes = 32, .width = 3});
        ASSERT_EQ(nodes.size(), 32u);
        std::map<std::pair<int, Token>, int> children;
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            ASSERT_LT(nodes[i].parent, static_cast<int>(i));
            ASSERT_LE(nodes[i].reached, i == 0 ? 1 : nodes[i - 1].reached);
            ASSERT_EQ((++children[{nodes[i].parent, nodes[i].token}]), 1);
        }
    }
}

}  // namespace
}  // namespace knap::copy_tree_test

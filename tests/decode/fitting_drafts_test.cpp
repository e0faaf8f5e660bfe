#include "decode/fitting_drafts.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/fake_constraint.h"
#include "support/toy_language.h"

namespace knap::test::fitting_drafts_test {
namespace {

using ::testing::ElementsAre;

// Tokens that descend.
const FakeConstraint kDescending([](const std::vector<Token>& text, Token token) {
    return text.empty() || token < text.back();
});

TEST(FittingDrafts, AChainEndsBeforeTheFirstTokenThatDoesNotFit) {
    DraftTree tree;
    tree.set_chain(std::vector<Token>{9, 7, 8, 2});
    DraftTree out;
    keep_fitting(tree, kDescending, out);
    EXPECT_THAT(out.tokens(), ElementsAre(9, 7));
    EXPECT_TRUE(out.is_chain());
}

TEST(FittingDrafts, NothingIsKeptOfADraftThatDoesNotFitAtAll) {
    FakeConstraint place = kDescending;
    place.text = {3};
    DraftTree tree;
    tree.set_chain(std::vector<Token>{5, 1});
    DraftTree out;
    keep_fitting(tree, place, out);
    EXPECT_TRUE(out.is_empty());
    keep_fitting(DraftTree(), place, out);
    EXPECT_TRUE(out.is_empty());
}

// Every node has the text of its own path.
TEST(FittingDrafts, BranchesOfATreeAreJudgedByTheirOwnPath) {
    DraftTree tree;
    const int five = tree.add(5, kPendingNode);
    const int nine = tree.add(9, kPendingNode);
    const int seven = tree.add(7, nine);
    tree.add(7, five);  // does not fit
    const int four = tree.add(4, five);
    tree.add(8, seven);  // does not fit
    tree.add(6, seven);
    tree.add(3, four);
    DraftTree out;
    keep_fitting(tree, kDescending, out);
    EXPECT_THAT(out.tokens(), ElementsAre(5, 9, 7, 4, 6, 3));
    EXPECT_EQ(out.parent(2), 1);
    EXPECT_EQ(out.parent(3), 0);
    EXPECT_EQ(out.parent(4), 2);
    EXPECT_EQ(out.parent(5), 3);
}

TEST(FittingDrafts, DrawsStayForTheRatioRule) {
    FakeConstraint place = kDescending;
    place.text = {6};
    DraftTree tree;
    const int eight = tree.add(8, kPendingNode);
    tree.add(2, kPendingNode);
    tree.add(1, eight);
    const Distribution q = distribution_of(std::vector<double>{0, 0.5, 0, 0, 0, 0, 0, 0, 0.5});
    tree.set_drawn_from(kPendingNode, q);
    DraftTree out;
    keep_fitting(tree, place, out);
    EXPECT_THAT(out.tokens(), ElementsAre(8, 2)) << "but nothing below";
    ASSERT_NE(out.drawn_from(kPendingNode), nullptr);
    EXPECT_EQ(out.drawn_from(kPendingNode)->tokens, q.tokens);
}

TEST(FittingDrafts, TheConstraintStaysWhereItIs) {
    const FakeConstraint place = kDescending;
    DraftTree tree;
    tree.set_chain(std::vector<Token>{3, 2});
    DraftTree out;
    keep_fitting(tree, place, out);
    EXPECT_TRUE(place.text.empty());
}

}  // namespace
}  // namespace knap::test::fitting_drafts_test

#include "decode/cascade/cascade.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "forward/plan_text.h"
#include "support/strategy_rig.h"

namespace knap::cascade_test {
namespace {

using Tokens = std::vector<Token>;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Cascades : public ::testing::Test {
  protected:
    std::unique_ptr<Strategy> build(SpeculationOptions options) {
        options.strategy = "cascade";
        return build_cascade(options, rig_.parts());
    }

    DraftWithPlan propose(Strategy& strategy, const Tokens& text, int n_room = kMaxDraft) {
        history_ = text;
        return std::get<DraftWithPlan>(
            strategy.propose({.history = history_, .n_room = n_room}).draft);
    }

    test::StrategyRig rig_;
    Tokens history_;
};

TEST_F(Cascades, GuessWhatFollowedAnEarlierMatch) {
    const auto strategy = build({.draft_max = 3, .settings = {{"plan", "exit=2"}}});
    strategy->begin({.prompt = Tokens{1, 2, 3, 10, 11}});
    const DraftWithPlan draft = propose(*strategy, {1, 2, 3, 10, 11, 12, 13, 1, 2, 3});
    EXPECT_THAT(draft.guess, ElementsAre(10, 11, 12));
    EXPECT_EQ(draft.stop.n_max, 3);
    EXPECT_EQ(*draft.plan, parse_plan("exit=2", rig_.model.config.n_layers));
}

TEST_F(Cascades, GuessAtMostAsManyTokensAsTheMatchHas) {
    const auto strategy = build({.draft_max = 6, .settings = {{"plan", "exit=2"}}});
    const Tokens pair = {9, 2, 3, 10, 11, 12, 13, 14, 1, 2, 3};
    strategy->begin({.prompt = pair});
    EXPECT_THAT(propose(*strategy, pair).guess, ElementsAre(10, 11));
    const Tokens looping(20, 7);
    strategy->begin({.prompt = looping});
    EXPECT_EQ(propose(*strategy, looping).guess.size(), 6u);
}

TEST_F(Cascades, DraftWithThePlanAloneWhenNothingMatches) {
    const auto strategy = build({.draft_max = 4, .settings = {{"plan", "exit=2"}}});
    strategy->begin({.prompt = Tokens{1, 2, 3}});
    const DraftWithPlan draft = propose(*strategy, {1, 2, 3, 4, 5});
    EXPECT_THAT(draft.guess, IsEmpty());
    EXPECT_EQ(draft.stop.n_max, 4);
}

TEST_F(Cascades, StayWithinTheRoom) {
    const auto strategy = build({.draft_max = 9, .settings = {{"plan", "exit=2"}}});
    const Tokens looping(20, 7);
    strategy->begin({.prompt = looping});
    EXPECT_EQ(propose(*strategy, looping, 2).guess.size(), 2u);
    EXPECT_TRUE(std::holds_alternative<PlainStep>(
        strategy->propose({.history = looping, .n_room = 0}).draft));
    // A round without room loses none of the text.
    Tokens longer = looping;
    longer.insert(longer.end(), {8, 9, 30, 8, 9});
    EXPECT_EQ(propose(*strategy, longer, 1).guess.front(), 30);
}

TEST_F(Cascades, AcceptTheSettingsOfPlanDrafts) {
    const auto strategy =
        build({.settings = {{"plan", "a=w4+8"}, {"width", "2"}, {"exit-confidence", "0.25"}}});
    strategy->begin({.prompt = Tokens(20, 7)});
    const DraftWithPlan draft = propose(*strategy, Tokens(20, 7));
    EXPECT_EQ(draft.stop.n_max, 6);
    EXPECT_EQ(draft.stop.exit_confidence, 0.25f);
    EXPECT_EQ(draft.width, 2);
}

TEST_F(Cascades, NeedAPlan) {
    try {
        build({});
        FAIL() << "built without a plan";
    } catch (const Error& error) {
        EXPECT_THAT(error.what(), ::testing::StartsWith(
                                      "`.settings[plan]`: expected a plan for strategy cascade"));
    }
}

}  // namespace
}  // namespace knap::cascade_test

#include "decode/static/static_plan.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "forward/plan_text.h"
#include "support/strategy_rig.h"

namespace knap::static_plan_test {
namespace {

constexpr int kLayers = 4;

DraftWithPlan propose(Strategy& strategy, int n_context, int n_room = kMaxDraft) {
    const std::vector<Token> history(static_cast<std::size_t>(n_context) + 1);
    const Proposal proposal = strategy.propose({.history = history, .n_room = n_room});
    EXPECT_TRUE(proposal.captures.empty());
    return std::get<DraftWithPlan>(proposal.draft);
}

StaticPlanStrategy with_options(const StaticPlanOptions& options) {
    return {parse_plan("exit=2", kLayers), options};
}

std::unique_ptr<Strategy> build(const SpeculationOptions& options) {
    static test::StrategyRig rig;  // a model of kLayers layers
    return build_static_plan(options, rig.parts());
}

TEST(StaticPlan, ProposesItsPlanLengthExitAndWidth) {
    auto strategy = with_options({.length = 5, .exit_confidence = 0.25f, .width = 3});
    const DraftWithPlan draft = propose(strategy, 10);
    EXPECT_EQ(*draft.plan, parse_plan("exit=2", kLayers));
    EXPECT_EQ(draft.stop.n_max, 5);
    EXPECT_EQ(draft.stop.exit_confidence, 0.25f);
    EXPECT_FALSE(draft.stop.marginal.has_value());
    EXPECT_EQ(draft.width, 3);
}

TEST(StaticPlan, WindowsAreFullWhileTheyCoverTheContext) {
    const ModulePlan plan = parse_plan("a0=w2+6,a1=w4+8,a2=skip,a3=w0+8,m3=skip", kLayers);
    StaticPlanStrategy strategy(plan, {});
    for (int n_context = 0; n_context < 20; ++n_context) {
        ASSERT_EQ(*propose(strategy, n_context).plan, canonical(plan, n_context)) << n_context;
    }
    // Another request may be shorter, and rounds advance by several tokens.
    for (int n_context : {0, 13, 12, 8, 9, 30, 7, 3, 11, 12, 13, 0, 8}) {
        ASSERT_EQ(*propose(strategy, n_context).plan, canonical(plan, n_context)) << n_context;
    }
}

TEST(StaticPlan, WindowsLeaveShorterOnesOfLayersAlone) {
    test::StrategyRig rig(tiny_model("tiny-gemma3"));  // five layers of 24 positions, and one
    for (const auto& [given, proposed] :
         {std::pair{"a=w4+23", "a5=w4+23"}, {"a=w4+22", "a=w4+22"}}) {
        const auto strategy =
            build_static_plan({.strategy = "static", .settings = {{"plan", given}}}, rig.parts());
        EXPECT_EQ(*propose(*strategy, 100).plan, parse_plan(proposed, 6)) << given;
    }
}

TEST(StaticPlan, RoundWithoutRoomIsPlain) {
    auto strategy = with_options({});
    const std::vector<Token> history(11);
    const Proposal proposal = strategy.propose({.history = history, .n_room = 0});
    EXPECT_TRUE(std::holds_alternative<PlainStep>(proposal.draft));
}

TEST(StaticPlan, RoomLimitsTheLength) {
    auto strategy = with_options({.length = 4, .width = 3});
    for (const int n_room : {1, 3, 4, 5, kMaxDraft}) {
        const DraftWithPlan draft = propose(strategy, 10, n_room);
        EXPECT_EQ(draft.stop.n_max, std::min(4, n_room));
        EXPECT_EQ(draft.width, 3) << "how many nodes fit is the round's business";
    }
}

TEST(StaticPlan, IsBuiltFromTheOptions) {
    const auto strategy =
        build({.strategy = "static",
               .draft_max = 3,
               .settings = {{"plan", "a1-2=skip"}, {"width", "2"}, {"exit-confidence", "0.5"}}});
    const DraftWithPlan draft = propose(*strategy, 10);
    EXPECT_EQ(*draft.plan, parse_plan("a1-2=skip", kLayers));
    EXPECT_EQ(draft.stop.n_max, 3);
    EXPECT_EQ(draft.stop.exit_confidence, 0.5f);
    EXPECT_EQ(draft.width, 2);
}

TEST(StaticPlan, DraftsSixTokensByDefault) {
    const auto strategy = build({.strategy = "static", .settings = {{"plan", "full"}}});
    const DraftWithPlan draft = propose(*strategy, 10);
    EXPECT_EQ(draft.stop.n_max, 6);
    EXPECT_FALSE(draft.stop.needs_confidence());
    EXPECT_EQ(draft.width, 1);
}

TEST(StaticPlan, MissingPlanErrorShowsAnExample) {
    try {
        build({.strategy = "static"});
        FAIL() << "built without a plan";
    } catch (const Error& error) {
        EXPECT_THAT(error.what(), ::testing::StartsWith("`.settings[plan]`: "));
        EXPECT_THAT(error.what(), ::testing::HasSubstr("a=w16+256"));
    }
}

TEST(StaticPlan, PlanThatDoesNotFitTheModelIsRefused) {
    for (const char* plan : {"exit=9", "a4=skip", "m0=w1+2", "nonsense"}) {
        EXPECT_THROW(build({.strategy = "static", .settings = {{"plan", plan}}}), Error) << plan;
    }
}

}  // namespace
}  // namespace knap::static_plan_test

#include "decode/draft_verify/draft_verify.h"

#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "forward/plan_text.h"
#include "support/fake_round.h"
#include "support/strategy_rig.h"

namespace knap::draft_verify_test {
namespace {

constexpr int kLayers = 4;

StrategyParts parts() {
    static test::StrategyRig rig;  // a model of kLayers layers
    return rig.parts();
}

std::unique_ptr<Strategy> build(SpeculationOptions options, int max_rows = parts().max_rows) {
    options.strategy = "draft-verify";
    StrategyParts with_rows = parts();
    with_rows.max_rows = max_rows;
    return build_draft_verify(options, with_rows);
}

DraftWithPlan propose(Strategy& strategy, int n_room = kMaxDraft) {
    const std::vector<Token> history(11);
    return std::get<DraftWithPlan>(strategy.propose({.history = history, .n_room = n_room}).draft);
}

void observe(Strategy& strategy, int n_accepted, int n_drafted) {
    const test::FakeRound round({.row = 10, .n_drafted = n_drafted, .n_accepted = n_accepted});
    strategy.observe(round.outcome());
}

TEST(DraftVerify, DraftsTwelveTokensWithItsPlan) {
    const auto strategy = build({.settings = {{"plan", "a1=skip,m2=skip"}, {"width", "2"}}});
    const DraftWithPlan draft = propose(*strategy);
    EXPECT_EQ(*draft.plan, parse_plan("a1=skip,m2=skip", kLayers));
    EXPECT_EQ(draft.stop.n_max, 12);
    EXPECT_EQ(draft.stop.exit_confidence, 0.6f);
    EXPECT_EQ(draft.stop.confidence_of, ConfidenceOf::drafted);
    EXPECT_EQ(draft.width, 2);
    EXPECT_EQ(propose(*strategy, 3).stop.n_max, 3);
}

TEST(DraftVerify, ThresholdFollowsAcceptanceAcrossRequests) {
    const auto strategy = build({.settings = {{"plan", "exit=2"}}});
    strategy->begin({});
    observe(*strategy, 1, 4);
    EXPECT_NEAR(propose(*strategy).stop.exit_confidence, 0.601, 1e-6);
    strategy->begin({});
    EXPECT_NEAR(propose(*strategy).stop.exit_confidence, 0.601, 1e-6);
    observe(*strategy, 0, 4);
    EXPECT_NEAR(propose(*strategy).stop.exit_confidence, 0.602, 1e-6);
}

TEST(DraftVerify, ForcedDraftsTeachNothing) {
    const auto strategy = build({.settings = {{"plan", "exit=2"}}});
    const test::FakeRound forced({.row = 10, .n_drafted = 4, .n_accepted = 1, .is_forced = true});
    strategy->observe(forced.outcome());
    EXPECT_EQ(propose(*strategy).stop.exit_confidence, 0.6f);
}

TEST(DraftVerify, CapIsALengthThatDraftsCanReach) {
    const auto strategy = build({.settings = {{"plan", "exit=2"},
                                              {"target", "0"},
                                              {"beta2", "0"},
                                              {"eps", "0.125"},
                                              {"exit-confidence", "0.5"}}},
                                /*max_rows=*/7);
    observe(*strategy, 6, 6);
    EXPECT_EQ(propose(*strategy).stop.exit_confidence, 0.5f) << "a draft of six is a full one";
    observe(*strategy, 5, 5);
    EXPECT_EQ(propose(*strategy).stop.exit_confidence, 0.375f);
}

TEST(DraftVerify, TakesItsSettings) {
    EXPECT_EQ(propose(*build({.draft_max = 3, .settings = {{"plan", "exit=2"}}})).stop.n_max, 3);
    const SpeculationOptions sure{.settings = {{"plan", "exit=2"}, {"exit-confidence", "0.25"}}};
    EXPECT_EQ(propose(*build(sure)).stop.exit_confidence, 0.25f);

    // AR = 0.25, below the target; the threshold moves half of the way to 0.5 + 0.25.
    const auto strategy = build({.settings = {{"plan", "exit=2"},
                                              {"target", "0.5"},
                                              {"eps", "0.25"},
                                              {"exit-confidence", "0.5"},
                                              {"beta1", "0.75"},
                                              {"beta2", "0.5"}}});
    observe(*strategy, 2, 2);
    EXPECT_EQ(propose(*strategy).stop.exit_confidence, 0.625f);
    EXPECT_THROW(build({.settings = {{"plan", "exit=2"}, {"beta1", "1.5"}}}), Error);
}

TEST(DraftVerify, NeedsAPlan) {
    try {
        build({});
        FAIL() << "built without a plan";
    } catch (const Error& error) {
        EXPECT_THAT(
            error.what(),
            ::testing::StartsWith("`.settings[plan]`: expected a plan for strategy draft-verify"));
    }
}

}  // namespace
}  // namespace knap::draft_verify_test

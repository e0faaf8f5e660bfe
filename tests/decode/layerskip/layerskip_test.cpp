#include "decode/layerskip/layerskip.h"

#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "forward/plan_text.h"
#include "support/strategy_rig.h"

namespace knap::layerskip_test {
namespace {

constexpr int kLayers = 4;

std::unique_ptr<Strategy> build(SpeculationOptions options) {
    static test::StrategyRig rig;  // a model of kLayers layers
    options.strategy = "layerskip";
    return build_layerskip(options, rig.parts());
}

DraftWithPlan propose(Strategy& strategy) {
    const std::vector<Token> history(11);
    return std::get<DraftWithPlan>(
        strategy.propose({.history = history, .n_room = kMaxDraft}).draft);
}

std::string complaint(const SpeculationOptions& options) {
    try {
        build(options);
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

TEST(Layerskip, IsAStaticEarlyExit) {
    const auto strategy = build({.draft_max = 3, .settings = {{"exit", "2"}}});
    const DraftWithPlan draft = propose(*strategy);
    EXPECT_EQ(*draft.plan, early_exit_plan(kLayers, 2));
    EXPECT_EQ(draft.stop.n_max, 3);
}

TEST(Layerskip, DraftsSixTokensWithAQuarterOfTheLayersByDefault) {
    const auto strategy = build({});
    const DraftWithPlan draft = propose(*strategy);
    EXPECT_EQ(*draft.plan, early_exit_plan(kLayers, 1));
    EXPECT_EQ(draft.stop.n_max, 6);
    EXPECT_FALSE(draft.stop.needs_confidence());
    EXPECT_EQ(default_exit_layer(32), 8) << "the paper's example";
    EXPECT_EQ(default_exit_layer(30), 7);
    EXPECT_EQ(default_exit_layer(3), 1);
    EXPECT_EQ(default_exit_layer(1), 1);
}

TEST(Layerskip, ExitsByConfidenceWhenAsked) {
    EXPECT_EQ(propose(*build({.settings = {{"exit-confidence", "0.5"}}})).stop.exit_confidence,
              0.5f);
}

TEST(Layerskip, TakesAPlan) {
    EXPECT_EQ(*propose(*build({.settings = {{"plan", "exit=3"}}})).plan,
              early_exit_plan(kLayers, 3));
}

TEST(Layerskip, ExitThatTheModelDoesNotHaveIsRefused) {
    EXPECT_EQ(complaint({.settings = {{"exit", "4"}}}), "");
    EXPECT_EQ(complaint({.settings = {{"exit", "5"}}}),
              "`.settings`: expected exit=1..4 for this model, found 5");
    for (const char* text : {"exit=0", "exit=-1", "exit=all"}) {
        EXPECT_THAT(complaint({.settings = parse_settings(text)}),
                    ::testing::StartsWith("`.settings`: expected exit=1..L, found "));
    }
    EXPECT_THAT(complaint({.settings = {{"plan", "exit=2"}, {"exit", "2"}}}),
                ::testing::HasSubstr("found both"));
}

}  // namespace
}  // namespace knap::layerskip_test

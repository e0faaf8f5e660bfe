#include "forward/module_plan.h"

#include <string>
#include <unordered_set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "knap/types.h"

namespace knap::module_plan_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string refusal_of(const ModulePlan& plan, int n_layers) {
    try {
        check_runnable(plan, n_layers);
    } catch (const Error& error) {
        return error.what();
    }
    return "accepted";
}

ModulePlan with_windows(int n_windows) {
    ModulePlan plan(8);
    for (int i = 0; i < n_windows; ++i) {
        plan.set(i, Module::attention, Level::windowed(16, 64 * (i + 1)));
    }
    return plan;
}

TEST(ModulePlan, BeginsAsTheWholeModel) {
    const ModulePlan plan(3);
    EXPECT_TRUE(plan.is_full());
    EXPECT_EQ(plan.n_layers(), 3);
    EXPECT_EQ(exact_layers(plan), 3);
    EXPECT_EQ(exit_layer(plan), 3);
    EXPECT_THAT(distinct_windows(plan), IsEmpty());
}

TEST(ModulePlan, IsFullOnlyWhenEverythingIs) {
    ModulePlan skips(3);
    skips.set(2, Module::mlp, Level::skip);
    EXPECT_FALSE(skips.is_full());
    EXPECT_FALSE(uniform_window_plan(3, {16, 256}).is_full());
    ModulePlan reduced(3);
    reduced.set_head(HeadLevel::reduced);
    EXPECT_FALSE(reduced.is_full());
}

TEST(ModulePlan, HashDistinguishesEveryModuleLevelAndHead) {
    std::unordered_set<std::size_t> hashes{std::hash<ModulePlan>{}(ModulePlan(4)),
                                           std::hash<ModulePlan>{}(ModulePlan(5))};
    std::size_t n_plans = hashes.size();
    const auto add = [&](const ModulePlan& plan) {
        ++n_plans;
        hashes.insert(std::hash<ModulePlan>{}(plan));
    };
    for (int layer = 0; layer < 4; ++layer) {
        for (const Level& level :
             {Level::skip, Level::windowed(1, 2), Level::windowed(2, 2), Level::windowed(2, 1)}) {
            ModulePlan plan(4);
            plan.set(layer, Module::attention, level);
            add(plan);
        }
        ModulePlan plan(4);
        plan.set(layer, Module::mlp, Level::skip);
        add(plan);
    }
    ModulePlan reduced(4);
    reduced.set_head(HeadLevel::reduced);
    add(reduced);
    EXPECT_EQ(hashes.size(), n_plans);
    ModulePlan same(4);
    same.set_head(HeadLevel::reduced);
    EXPECT_EQ(same, reduced);
    EXPECT_EQ(same.hash(), reduced.hash());
}

TEST(ModulePlan, EarlyExitSkipsFromTheExitOn) {
    const ModulePlan plan = early_exit_plan(5, 3);
    for (int layer = 0; layer < 5; ++layer) {
        for (const Module module : {Module::attention, Module::mlp}) {
            EXPECT_EQ(plan.runs(layer, module), layer < 3) << layer;
        }
    }
    EXPECT_EQ(exit_layer(plan), 3);
    EXPECT_EQ(exact_layers(plan), 3);
    EXPECT_EQ(early_exit_plan(5, 5), ModulePlan(5));
    EXPECT_EQ(exit_layer(early_exit_plan(5, 0)), 0);
    EXPECT_EQ(exact_layers(early_exit_plan(5, 0)), 0);
}

TEST(ModulePlan, ExitLayerFollowsTheLastModuleThatRuns) {
    ModulePlan plan = early_exit_plan(6, 2);
    plan.set(4, Module::mlp, Level::full);
    EXPECT_EQ(exit_layer(plan), 5);
    plan = early_exit_plan(6, 2);
    plan.set(3, Module::attention, Level::windowed(4, 4));
    EXPECT_EQ(exit_layer(plan), 4);
}

TEST(ModulePlan, ExactLayersEndAtTheFirstModuleThatIsNotFull) {
    ModulePlan skips_mlp(6);
    skips_mlp.set(2, Module::mlp, Level::skip);
    EXPECT_EQ(exact_layers(skips_mlp), 2);
    ModulePlan windows(6);
    windows.set(4, Module::attention, Level::windowed(4, 4));
    EXPECT_EQ(exact_layers(windows), 4);
    windows.set(1, Module::attention, Level::skip);
    EXPECT_EQ(exact_layers(windows), 1);
}

TEST(ModulePlan, UniformWindowsLeaveTheMlpsAlone) {
    const ModulePlan plan = uniform_window_plan(3, {16, 256});
    for (int layer = 0; layer < 3; ++layer) {
        EXPECT_EQ(plan.level(layer, Module::attention), Level::windowed(16, 256));
        EXPECT_EQ(plan.level(layer, Module::mlp), Level::full);
    }
}

TEST(ModulePlan, DistinctWindowsAreUniqueAndSorted) {
    ModulePlan plan(6);
    plan.set(0, Module::attention, Level::windowed(16, 512));
    plan.set(1, Module::attention, Level::windowed(4, 1024));
    plan.set(3, Module::attention, Level::windowed(16, 128));
    plan.set(4, Module::attention, Level::windowed(16, 512));
    plan.set(5, Module::attention, Level::skip);
    EXPECT_THAT(distinct_windows(plan),
                ElementsAre(Window{4, 1024}, Window{16, 128}, Window{16, 512}));
}

TEST(ModulePlan, WindowThatCoversTheContextIsFull) {
    const ModulePlan plan = uniform_window_plan(3, {16, 256});
    EXPECT_EQ(canonical(plan, 271), ModulePlan(3));
    EXPECT_EQ(canonical(plan, 272), ModulePlan(3));
    EXPECT_EQ(canonical(plan, 273), plan);
}

TEST(ModulePlan, CanonicalFormTreatsEachModuleSeparately) {
    ModulePlan plan = uniform_window_plan(4, {16, 256});
    plan.set(1, Module::attention, Level::windowed(8, 8));
    plan.set(2, Module::attention, Level::skip);
    plan.set(2, Module::mlp, Level::skip);
    ModulePlan expected(4);
    expected.set(1, Module::attention, Level::windowed(8, 8));
    expected.set(2, Module::attention, Level::skip);
    expected.set(2, Module::mlp, Level::skip);
    EXPECT_EQ(canonical(plan, 100), expected);
}

TEST(ModulePlan, WindowsThatDoNotNarrowALayersOwnAreFull) {
    ModulePlan plan = uniform_window_plan(4, {16, 255});
    plan.set(1, Module::mlp, Level::skip);
    plan.set(3, Module::attention, Level::skip);
    ModulePlan expected = plan;
    expected.set(1, Module::attention, Level::full);
    EXPECT_EQ(within_own_windows(plan, std::vector{0, 256, 257, 8}), expected);
    EXPECT_EQ(within_own_windows(plan, std::vector{0, 0, 0, 0}), plan);
    EXPECT_EQ(exact_layers(uniform_window_plan({16, 255}, std::vector{256, 100, 0, 256})), 2)
        << "drafts compute these as the whole model does";
}

TEST(RunnablePlan, HasTheLayersOfTheModel) {
    EXPECT_EQ(refusal_of(ModulePlan(4), 4), "accepted");
    EXPECT_EQ(refusal_of(ModulePlan(4), 5),
              "`.settings[plan]`: expected a plan of the model's 5 layers, found one of 4");
}

TEST(RunnablePlan, HasAtMostFourWindows) {
    EXPECT_EQ(refusal_of(with_windows(4), 8), "accepted");
    EXPECT_EQ(refusal_of(with_windows(5), 8),
              "`.settings[plan]`: expected at most 4 different windows, found 5");
}

TEST(RunnablePlan, HasFewerExpertsThanTheModelUses) {
    ModulePlan plan(4);
    EXPECT_NO_THROW(check_experts(plan, 0, "here"));
    plan.set(1, Module::mlp, Level::with_experts(2));
    plan.set(2, Module::mlp, Level::with_experts(1));
    EXPECT_EQ(most_experts(plan), 2);
    EXPECT_NO_THROW(check_experts(plan, 3, "here"));
    EXPECT_THROW(check_experts(plan, 2, "here"), Error);
    EXPECT_THROW(check_experts(plan, 1, "here"), Error);
    EXPECT_THROW(check_experts(plan, 0, "here"), Error);
    EXPECT_EQ(exact_layers(plan), 1);
    EXPECT_FALSE(plan.is_full());
    EXPECT_TRUE(plan.runs(1, Module::mlp));
    ModulePlan other = plan;
    other.set(1, Module::mlp, Level::with_experts(3));
    EXPECT_NE(other, plan);
    EXPECT_NE(other.hash(), plan.hash());
}

TEST(RunnablePlan, HasAnAvailableHead) {
    ModulePlan plan(4);
    EXPECT_NO_THROW(check_runnable(plan, 4, "here", HeadLevel::full));
    EXPECT_NO_THROW(check_runnable(plan, 4, "here", HeadLevel::reduced));
    plan.set_head(HeadLevel::reduced);
    EXPECT_NO_THROW(check_runnable(plan, 4, "here", HeadLevel::reduced));
    EXPECT_THAT(
        refusal_of(plan, 4),
        ::testing::MatchesRegex("`.settings\\[plan\\]`: expected head=full.*found head=reduced"));
}

}  // namespace
}  // namespace knap::module_plan_test

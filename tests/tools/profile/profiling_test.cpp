#include "tools/profile/profiling.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "runtime/engine_impl.h"
#include "runtime/files/known_costs.h"
#include "support/loaded_model.h"
#include "support/tiny_model.h"

namespace knap::test::profiling_test {
namespace {

using ::testing::ElementsAre;

TEST(PlanContexts, ReachAsFarAsTextAndContext) {
    EXPECT_THAT(plan_contexts(100000, 32768), ElementsAre(512, 2048, 4096, 8192));
    EXPECT_THAT(plan_contexts(5000, 8192), ElementsAre(512, 2048, 4096));
    EXPECT_THAT(plan_contexts(8192, 2048), ElementsAre(512, 2048));
    EXPECT_THAT(plan_contexts(512, 512), ElementsAre(512));
    EXPECT_THAT(plan_contexts(511, 8192), ElementsAre(511)) << "all of a short text";
    EXPECT_THAT(plan_contexts(128, 8192), ElementsAre(128));
    EXPECT_THROW(plan_contexts(127, 8192), Error);
    EXPECT_THROW(plan_contexts(8192, 127), Error);
}

class Profiling : public ::testing::Test {
  protected:
    Engine engine_{{.model_path = tiny_model(), .n_ctx = 600, .n_threads = 1}};

    // A machine on which verification costs next to nothing, so that drafting pays.
    CostModel friendly_costs() const {
        CostProfile profile = blank_profile(impl_of(engine_));
        const ModulePlan full(profile.n_layers());
        const ModulePlan half = early_exit_plan(profile.n_layers(), profile.n_layers() / 2);
        profile.samples = {
            {.plan = full, .n_context = 128, .ms = 10},
            {.plan = full, .n_context = 1024, .ms = 20},
            {.plan = half, .n_context = 128, .ms = 5.5},
            {.plan = full, .n_context = 128, .n_rows = 16, .ms = 10.5},
            {.plan = full, .n_context = 1024, .n_rows = 16, .ms = 20.5},
        };
        return CostModel(profile);
    }
};

TEST_F(Profiling, MeasuresPassesUpToTheContext) {
    double last_fraction = 0;
    const auto profile = profile_engine(
        engine_, 0.01, {.on_progress = [&](double fraction) { last_fraction = fraction; }});
    ASSERT_TRUE(profile.has_value());
    EXPECT_TRUE(can_fit(*profile));
    EXPECT_EQ(profile->layer_classes, blank_profile(impl_of(engine_)).layer_classes);
    EXPECT_GT(profile->bytes.head, 0);
    EXPECT_EQ(std::ranges::max(profile->samples, {}, &CostSample::n_context).n_context, 600);
    EXPECT_GT(std::ranges::max(profile->samples, {}, &CostSample::n_rows).n_rows, 1);
    EXPECT_EQ(last_fraction, 1);
}

TEST_F(Profiling, FindsPlansAndReportsEachContext) {
    std::vector<PlansAtContext> found;
    EXPECT_TRUE(find_plans(engine_, random_tokens(600, 256, 1), friendly_costs(),
                           [&](const PlansAtContext& at) { found.push_back(at); }));
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].n_context, 512);
    ASSERT_FALSE(found[0].plans.empty());
    for (const FoundPlan& plan : found[0].plans) {
        EXPECT_EQ(plan.n_rows, 64);
        EXPECT_NO_THROW(check_runnable(plan.plan, 4));
        EXPECT_FALSE(plan.plan.is_full());
    }
    const auto costs_more = [](const FoundPlan& a, const FoundPlan& b) {
        return a.draft_step_ms < b.draft_step_ms;
    };
    EXPECT_TRUE(std::ranges::is_sorted(found[0].plans, costs_more)) << "a frontier";
    EXPECT_TRUE(std::ranges::is_sorted(found[0].plans, {}, &FoundPlan::n_agreed)) << "a frontier";
}

TEST_F(Profiling, StopsWhenCancelled) {
    const ProfilingObserver cancelled{.is_cancelled = [] { return true; }};
    EXPECT_EQ(profile_engine(engine_, 60, cancelled), std::nullopt);
    EXPECT_FALSE(find_plans(
        engine_, random_tokens(600, 256, 1), friendly_costs(),
        [](const PlansAtContext&) { ADD_FAILURE() << "nothing was found"; }, cancelled));
    EXPECT_TRUE(profile_engine(engine_, 0.01)) << "cancellation ends with the call";
}

}  // namespace
}  // namespace knap::test::profiling_test

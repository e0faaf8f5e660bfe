// Drafts with fewer experts, from where such plans are found to what is written: the knapsack
// proposes them, they draft, are saved and tried again, and the text is plain decoding's.
#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "knap/knap.h"

#include "forward/plan_text.h"
#include "runtime/engine_impl.h"
#include "runtime/files/known_costs.h"
#include "search/cost/cost_model.h"
#include "search/plan_search.h"
#include "support/baseline.h"
#include "support/eager_profile.h"
#include "support/environment_variable.h"
#include "support/search_rig.h"
#include "support/strategy_cases.h"
#include "support/tiny_model.h"

namespace knap::test::expert_plans_test {
namespace {

using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;

constexpr int kPrompt = 90;
constexpr int kUsed = 3;  // experts of a token

// Every token uses 3 of 8 experts.
class ExpertPlans : public ::testing::TestWithParam<const char*> {
  protected:
    ExpertPlans()
        : folder_("KNAP_CACHE_DIR", (temporary_folder() / "expert-plans").string()),
          config_(with_eager_profile(config_of_shape(GetParam()), Slow::weights)),
          engine_(config_),
          session_(engine_) {}

    // What a search on the prompt finds.
    std::vector<FoundPlan> search() const {
        SearchRig rig({.model = config_.model_path, .text = prompt_});
        const CostModel costs(known_profile(impl_of(engine_)));
        const auto found = search_plans(rig.rig.forward, rig.rig.cache, rig.text, 16, costs,
                                        {.min_cosine = -1, .max_replays = 100});
        return found.value_or(std::vector<FoundPlan>{});
    }

    Result draft(Session& session, const SpeculationOptions& speculation) {
        GenerateOptions options = request_;
        options.speculation = speculation;
        const Result result = session.generate(prompt_, options);
        EXPECT_EQ(result.tokens, plain_.tokens);
        EXPECT_TRUE(result.speculation.row_invariant);
        return result;
    }

    EnvironmentVariable folder_;
    RuntimeConfig config_;
    Engine engine_;
    Session session_;
    std::vector<Token> prompt_ = random_tokens(kPrompt, 256, 3);
    GenerateOptions request_{.n_predict = 40, .ignore_eos = true};
    Result plain_ = plain_text(session_, prompt_, request_);
};

TEST_P(ExpertPlans, AreFoundByTheKnapsackAndDraft) {
    int n_plans = 0;
    int n_drafted = 0;
    int n_accepted = 0;
    for (const FoundPlan& found : search()) {
        ASSERT_LT(most_experts(found.plan), kUsed);
        if (found.source != FoundPlan::Source::knapsack || most_experts(found.plan) == 0) {
            continue;
        }
        ++n_plans;
        const std::string text = to_string(found.plan);
        SCOPED_TRACE(text);
        const Result result = draft(session_, {.strategy = "static", .settings = {{"plan", text}}});
        n_drafted += result.speculation.n_drafted;
        n_accepted += result.speculation.n_accepted;
    }
    EXPECT_GT(n_plans, 1);
    EXPECT_GT(n_accepted, 0);
    EXPECT_LT(n_accepted, n_drafted);
}

// From the file of plans, as by the next process.
TEST_P(ExpertPlans, AreSavedAndTriedAgain) {
    const PlansModel model = plans_model(impl_of(engine_));
    const ModulePlan plan = parse_plan("m=e1,m0=e2", model.n_layers);
    const SavedPlan saved{.n_context = kPrompt, .plan = plan, .agreed = 31, .n_rows = 32};
    save_plans(*plans_path(model), model, std::span(&saved, 1));
    Engine next(config_);
    Session session(next);
    const Result result =
        draft(session, {.strategy = "knapspec", .settings = {{"margin", "0"}, {"copies", "off"}}});
    EXPECT_GT(result.speculation.plans.n_drafted, 0);
    EXPECT_THAT(result.decisions, Contains(Field(&Decision::plan, HasSubstr(to_string(plan)))));
}

INSTANTIATE_TEST_SUITE_P(Shapes,
                         ExpertPlans,
                         ::testing::Values("tiny-qwen3moe", "tiny-gpt-oss"),
                         name_of_shape);

}  // namespace
}  // namespace knap::test::expert_plans_test

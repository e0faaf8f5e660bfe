#include "tools/explain/explain.h"

#include <algorithm>
#include <cmath>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "forward/plan_text.h"
#include "support/baseline.h"
#include "support/loaded_model.h"
#include "support/tiny_model.h"

namespace knap::test::explain_explain_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Explain : public ::testing::Test {
  protected:
    static constexpr ExplainOptions kQuick{
        .n_predict = 12, .profile_seconds = 0.05, .max_trials = 2};
    static constexpr int kLayers = 4;

    Engine engine_{{.model_path = tiny_model(), .n_ctx = 400, .n_threads = 1, .profile = "none"}};
    const std::vector<Token> prompt_ = random_tokens(200, 256, 3);
};

TEST_F(Explain, CandidatesHaveFiniteNumbersAndTheFastestIsFirst) {
    const auto found = explain(engine_, prompt_, kQuick);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->n_prompt, 200);
    EXPECT_FALSE(found->has_saved_costs);
    EXPECT_GT(found->plain_step_ms, 0);
    ASSERT_FALSE(found->candidates.empty()) << "windows of 64 and 128 rows leave something out";
    for (const PlanCandidate& candidate : found->candidates) {
        EXPECT_FALSE(candidate.plan.is_full());
        EXPECT_TRUE(std::isfinite(candidate.draft_ratio));
        EXPECT_GT(candidate.draft_ratio, 0);
        EXPECT_GT(candidate.acceptance, 0);
        EXPECT_LT(candidate.acceptance, 1);
        EXPECT_GE(candidate.length, 1);
        EXPECT_TRUE(std::isfinite(candidate.predicted_speed));
        EXPECT_GT(candidate.predicted_speed, 0);
    }
    EXPECT_TRUE(std::ranges::is_sorted(found->candidates, std::ranges::greater{},
                                       &PlanCandidate::predicted_speed));
}

TEST_F(Explain, OneRowCostsAStepAndMoreRowsAreListed) {
    const auto found = explain(engine_, prompt_, kQuick);
    ASSERT_TRUE(found);
    std::vector<int> rows;
    for (const VerifyPrice& price : found->verify) {
        rows.push_back(price.n_rows);
        EXPECT_TRUE(std::isfinite(price.steps));
    }
    EXPECT_THAT(rows, ElementsAre(1, 2, 4, 8));
    EXPECT_DOUBLE_EQ(found->verify.front().steps, 1);
}

TEST_F(Explain, TheBestCandidatesAreTriedAndEveryRunWritesThePlainText) {
    const auto found = explain(engine_, prompt_, kQuick);
    ASSERT_TRUE(found);
    Session session(engine_);
    const Result plain = plain_text(session, prompt_, {.n_predict = 12});
    expect_plain_decoding(found->plain);
    EXPECT_EQ(found->plain.tokens, plain.tokens);
    int n_tried = 0;
    for (const PlanCandidate& candidate : found->candidates) {
        if (candidate.trial) {
            ++n_tried;
            EXPECT_EQ(candidate.trial->result.tokens, plain.tokens);
            EXPECT_TRUE(candidate.trial->is_plain_text);
            EXPECT_GT(candidate.trial->result.speculation.n_drafted, 0);
            EXPECT_GT(candidate.trial->speed, 0);
        }
    }
    EXPECT_EQ(n_tried, 2);
    EXPECT_TRUE(found->candidates.front().trial.has_value());
    for (const Trial* trial : {&found->lookup, &found->knapspec}) {
        EXPECT_EQ(trial->result.tokens, plain.tokens);
        EXPECT_TRUE(trial->is_plain_text);
        EXPECT_GT(trial->speed, 0);
    }
    EXPECT_EQ(found->knapspec.result.strategy, "knapspec");
    EXPECT_FALSE(found->knapspec.result.decisions.empty());
}

TEST_F(Explain, ThePlanOfTheLastDecisionIsChosenUnlessPlainDecodingIsPredictedToBeFaster) {
    const auto found = explain(engine_, prompt_, kQuick);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->chosen,
              chosen_plan(found->knapspec.result.decisions, found->candidates, kLayers));

    const ModulePlan windows = parse_plan("a=w16+64", kLayers);
    const auto candidate = [&](double predicted_speed) {
        return std::vector<PlanCandidate>{{.plan = parse_plan("exit=1", kLayers)},
                                          {.plan = windows, .predicted_speed = predicted_speed}};
    };
    const Decision drafts{.plan = "a=w16+64", .predicted = 1.1};
    const Decision declines{.predicted = 1};
    using Decisions = std::vector<Decision>;
    EXPECT_EQ(chosen_plan(Decisions{declines, drafts}, candidate(1.2), kLayers), windows);
    EXPECT_EQ(chosen_plan(Decisions{drafts}, candidate(0.87), kLayers), std::nullopt);
    EXPECT_EQ(chosen_plan(Decisions{drafts, declines}, candidate(1.2), kLayers), std::nullopt);
    EXPECT_EQ(chosen_plan(Decisions{drafts}, {}, kLayers), windows)
        << "found while it was in use: what knapspec predicted counts";
    EXPECT_EQ(chosen_plan(Decisions{}, candidate(1.2), kLayers), std::nullopt);
}

TEST_F(Explain, AShortPromptHasNoWindowsToChooseFrom) {
    const auto found = explain(engine_, std::span(prompt_).first(1), kQuick);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->n_prompt, 1);
    for (const PlanCandidate& candidate : found->candidates) {
        EXPECT_TRUE(distinct_windows(candidate.plan).empty());
    }
    EXPECT_TRUE(found->knapspec.is_plain_text);
}

TEST_F(Explain, APromptThatFillsTheContextIsExplained) {
    const auto found = explain(engine_, random_tokens(400, 256, 3), kQuick);
    ASSERT_TRUE(found);
    EXPECT_TRUE(found->knapspec.is_plain_text);
}

TEST_F(Explain, StagesAreToldInTheirOrder) {
    std::vector<std::string> stages;
    const auto hear = [&](std::string_view stage, double fraction) {
        EXPECT_GE(fraction, 0);
        EXPECT_LE(fraction, 1);
        if (stages.empty() || stages.back() != stage) {
            stages.emplace_back(stage);
        }
    };
    ASSERT_TRUE(explain(engine_, prompt_, kQuick, {.on_progress = hear}));
    EXPECT_THAT(stages, ElementsAre("measure", "prompt", "search", "runs"));
}

TEST_F(Explain, EndsWhenItIsCancelledInAnyStage) {
    for (const std::string stage : {"measure", "prompt", "search", "runs"}) {
        bool is_reached = false;
        const ExplainObserver observer{
            .on_progress = [&](std::string_view now, double) { is_reached |= now == stage; },
            .is_cancelled = [&] { return is_reached; }};
        EXPECT_FALSE(explain(engine_, prompt_, kQuick, observer)) << stage;
    }
    EXPECT_TRUE(explain(engine_, prompt_, kQuick)) << "the wish to cancel ends with the call";
}

TEST_F(Explain, BadPromptsAreRefusedBeforeAnythingIsMeasured) {
    const ExplainObserver observer{
        .on_progress = [](std::string_view stage, double) { ADD_FAILURE() << stage; }};
    EXPECT_THROW(explain(engine_, {}, kQuick, observer), Error);
    EXPECT_THROW(explain(engine_, random_tokens(401, 256, 3), kQuick, observer), Error);
}

}  // namespace
}  // namespace knap::test::explain_explain_test

#include "search/knapsack.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "search/module_weights.h"
#include "support/fake_evaluator.h"

namespace knap::knapsack_test {
namespace {

using test::FakeEvaluator;
using test::FakeModel;
using test::FakeState;
using test::residual_model;
using test::saved_by;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
const KnapsackOptions kNoPruning{.min_cosine = -1};
const Level kNarrow = Level::windowed(1, 2);
const Level kWide = Level::windowed(1, 4);
const KnapsackItem kForced{};
const KnapsackItem kSkippable{.cheaper = {{.level = Level::skip, .saved = 1}}};

// The levels of a plan, one letter per module: full, skip, narrow or wide window.
std::string letters(const ModulePlan& plan) {
    std::string text;
    for (int layer = 0; layer < plan.n_layers(); ++layer) {
        for (const Module module : {Module::attention, Module::mlp}) {
            const Level& level = plan.level(layer, module);
            text += level == Level::full ? 'f' : level == Level::skip ? 's' : 'n';
            text.back() = level == kWide ? 'w' : text.back();
        }
    }
    return text;
}

std::vector<std::string> plans(const std::vector<KnapsackCandidate>& candidates) {
    std::vector<std::string> texts;
    std::ranges::transform(candidates, std::back_inserter(texts), letters,
                           &KnapsackCandidate::plan);
    return texts;
}

std::vector<int> saved(const KnapsackProblem& problem,
                       const std::vector<KnapsackCandidate>& candidates) {
    std::vector<int> weights;
    for (const KnapsackCandidate& candidate : candidates) {
        weights.push_back(saved_by(problem, candidate.plan));
    }
    return weights;
}

// A model whose cosine is always `mean`, whatever runs.
FakeModel constant_model(int n_layers, double mean = 1.0) {
    FakeModel model = residual_model(1, n_layers, 4);
    model.score = [mean](int, const FakeState&) { return 4 * mean; };
    return model;
}

std::vector<KnapsackCandidate> solve(const KnapsackProblem& problem,
                                     const FakeModel& model,
                                     const KnapsackOptions& options = {}) {
    FakeEvaluator evaluator(model);
    return solve_knapsack(problem, options, evaluator);
}

KnapsackProblem published_problem(int n_layers) {
    return skip_problem({.attention = 2, .mlp = 1}, {.n_layers = n_layers});
}

TEST(Knapsack, WithoutABudgetTheWholeModelIsTheOnlyCandidate) {
    KnapsackProblem problem = published_problem(4);
    problem.budget = 0;
    const FakeModel model = residual_model(1, 4);
    FakeEvaluator evaluator(model);
    const auto candidates = solve_knapsack(problem, kNoPruning, evaluator);
    ASSERT_THAT(candidates, SizeIs(1));
    EXPECT_TRUE(candidates[0].plan.is_full());
    EXPECT_THAT(evaluator.row(), ElementsAre(model.target.back()));
}

TEST(Knapsack, PublishedMethodFindsOnlyTheWholeModelWithOneLayer) {
    const FakeModel model = residual_model(1, 1);
    FakeEvaluator evaluator(model);
    const auto candidates = solve_knapsack(published_problem(1), {}, evaluator);
    EXPECT_THAT(plans(candidates), ElementsAre("ff"));
    EXPECT_EQ(candidates[0].score, evaluator.n_rows());
    EXPECT_THAT(evaluator.row(), ElementsAre(model.target.back()));
    EXPECT_THAT(evaluator.modules_tried(), IsEmpty());
}

TEST(Knapsack, PublishedMethodFindsOnlyTheWholeModelWithTwoLayers) {
    const FakeModel model = residual_model(1, 2);
    FakeEvaluator evaluator(model);
    const auto candidates = solve_knapsack(published_problem(2), {}, evaluator);
    EXPECT_THAT(plans(candidates), ElementsAre("ffff"));
    EXPECT_THAT(evaluator.modules_tried(), ElementsAre(2, 3));
}

TEST(Knapsack, FindsEveryPlanOfOneLayerWithoutForcedModules) {
    const KnapsackProblem problem{.items = {kSkippable, {.cheaper = {{Level::skip, 2}}}},
                                  .budget = 3};
    EXPECT_THAT(plans(solve(problem, residual_model(1, 1), kNoPruning)),
                ElementsAre("ff", "sf", "fs", "ss"));
}

TEST(Knapsack, ForcedModulesStayFull) {
    const KnapsackProblem problem{.items = {kForced, kSkippable, kSkippable, kForced}, .budget = 4};
    EXPECT_THAT(plans(solve(problem, constant_model(2))), ElementsAre("ffff", "fsff", "fssf"));
}

TEST(Knapsack, CandidatesAscendBySavedWeight) {
    const KnapsackProblem problem{
        .items = {kSkippable, {.cheaper = {{Level::skip, 5}}}, kForced, kForced}, .budget = 6};
    EXPECT_THAT(saved(problem, solve(problem, constant_model(2))), ElementsAre(0, 1, 5, 6));
}

TEST(Knapsack, LevelsAboveTheBudgetAreNotTried) {
    const KnapsackProblem problem{
        .items = {kSkippable, {.cheaper = {{Level::skip, 5}}}, kForced, kForced}, .budget = 5};
    const FakeModel model = constant_model(2);
    FakeEvaluator evaluator(model);
    std::vector<int> skipped;
    evaluator.spoil = [&skipped](int module, int state, const Level& level, double score) {
        if (module == 1 && level == Level::skip) {
            skipped.push_back(state);
        }
        return score;
    };
    EXPECT_THAT(saved(problem, solve_knapsack(problem, {}, evaluator)), ElementsAre(0, 1, 5));
    EXPECT_THAT(skipped, ElementsAre(0)) << "the state that has saved 1 cannot save 5 more";
}

TEST(Knapsack, TieRunsTheModule) {
    const KnapsackProblem problem{.items = std::vector(4, kSkippable), .budget = 2};
    EXPECT_THAT(plans(solve(problem, constant_model(2))), ElementsAre("ffff", "sfff", "ssff"));
}

TEST(Knapsack, TieSkipsTheModuleAsInThePseudoCode) {
    const KnapsackProblem problem{.items = std::vector(4, kSkippable), .budget = 2};
    EXPECT_THAT(plans(solve(problem, constant_model(2), {.skip_wins_ties = true})),
                ElementsAre("ffff", "fffs", "ffss"));
}

TEST(Knapsack, LevelThatSavesLessWinsATie) {
    // A weight of 2 is saved by the third module alone, or by the first and a window in the third.
    const KnapsackItem either{.cheaper = {{Level::skip, 2}, {kWide, 1}}};
    const KnapsackProblem problem{.items = {kSkippable, kForced, either, kForced}, .budget = 2};
    EXPECT_THAT(plans(solve(problem, constant_model(2))), ElementsAre("ffff", "sfff", "sfwf"));
}

TEST(Knapsack, FirstLevelWinsATieOfScoresAndSavings) {
    const auto only = [](const KnapsackItem& item) {
        return KnapsackProblem{.items = {item, kForced}, .budget = 1};
    };
    const KnapsackItem wide_first{.cheaper = {{kWide, 1}, {kNarrow, 1}}};
    const KnapsackItem narrow_first{.cheaper = {{kNarrow, 1}, {kWide, 1}}};
    EXPECT_THAT(plans(solve(only(wide_first), constant_model(1))), ElementsAre("ff", "wf"));
    EXPECT_THAT(plans(solve(only(narrow_first), constant_model(1))), ElementsAre("ff", "nf"));
}

TEST(Knapsack, LevelThatSavesNothingIsTakenOnlyForAHigherScore) {
    const KnapsackProblem problem{.items = {{.cheaper = {{kWide, 0}}}, kForced}, .budget = 0};
    EXPECT_THAT(plans(solve(problem, constant_model(1))), ElementsAre("ff"));
    FakeModel model = constant_model(1);
    FakeEvaluator evaluator(model);
    evaluator.spoil = [](int, int, const Level& level, double score) {
        return level == Level::full ? score - 1 : score;
    };
    EXPECT_THAT(plans(solve_knapsack(problem, {}, evaluator)), ElementsAre("wf"));
}

TEST(Knapsack, MeanCosineAtTheThresholdStays) {
    const KnapsackProblem problem{.items = std::vector(2, kSkippable), .budget = 2};
    EXPECT_THAT(solve(problem, constant_model(1, 0.5)), SizeIs(3));
    EXPECT_THAT(solve(problem, constant_model(1, 0.499)), IsEmpty());
    EXPECT_THAT(solve(problem, constant_model(1, 0.5), {.strict_threshold = true}), IsEmpty());
    EXPECT_THAT(solve(problem, constant_model(1, 0.501), {.strict_threshold = true}), SizeIs(3));
}

TEST(Knapsack, DropsScoresThatAreNotFinite) {
    const KnapsackProblem problem{.items = std::vector(4, kSkippable), .budget = 4};
    const FakeModel model = constant_model(2);
    for (const double bad : {kNaN, HUGE_VAL, -HUGE_VAL}) {
        FakeEvaluator evaluator(model);
        evaluator.spoil = [bad](int module, int, const Level& level, double score) {
            return module == 1 && level == Level::skip ? bad : score;
        };
        EXPECT_THAT(plans(solve_knapsack(problem, kNoPruning, evaluator)),
                    ElementsAre("ffff", "sfff", "sfsf", "sfss"));
    }
}

TEST(Knapsack, EndsWithoutCandidatesWhenARowLosesEveryCell) {
    const KnapsackProblem problem{.items = std::vector(8, kSkippable), .budget = 4};
    const FakeModel model = constant_model(4);
    FakeEvaluator evaluator(model);
    evaluator.spoil = [](int module, int, const Level&, double score) {
        return module == 3 ? kNaN : score;
    };
    EXPECT_THAT(solve_knapsack(problem, {}, evaluator), IsEmpty());
    EXPECT_THAT(evaluator.modules_tried(), ElementsAre(0, 1, 2, 3));
    EXPECT_EQ(evaluator.n_live(), 0);
}

TEST(Knapsack, EveryModuleIsTriedInOneBatch) {
    const FakeModel model = residual_model(1, 4);
    FakeEvaluator evaluator(model);
    EXPECT_THAT(solve_knapsack(published_problem(4), kNoPruning, evaluator), SizeIs(7));
    EXPECT_THAT(evaluator.modules_tried(), ElementsAre(2, 3, 4, 5, 6, 7));
}

TEST(Knapsack, HoldsAtMostTwoRowsOfStates) {
    const FakeModel model = residual_model(1, 12);
    FakeEvaluator evaluator(model);
    const KnapsackProblem problem = published_problem(12);
    EXPECT_THAT(solve_knapsack(problem, kNoPruning, evaluator), SizeIs(problem.budget + 1));
    EXPECT_EQ(evaluator.max_live(), 2 * (problem.budget + 1));
    EXPECT_EQ(evaluator.n_live(), problem.budget + 1);
}

TEST(Knapsack, HoldsOneMoreRowPerLevelTried) {
    const KnapsackItem attention{.cheaper = {{kWide, 1}, {kNarrow, 2}, {Level::skip, 3}}};
    KnapsackProblem problem{.budget = 9};
    for (int layer = 0; layer < 8; ++layer) {
        problem.items.insert(problem.items.end(), {attention, kSkippable});
    }
    const FakeModel model = residual_model(1, 8);
    FakeEvaluator evaluator(model);
    solve_knapsack(problem, kNoPruning, evaluator);
    // 10 states in the row, 10 results at `full`, and 9 and 8 states that can afford the windows.
    EXPECT_EQ(evaluator.max_live(), 10 + 10 + 9 + 8);
}

TEST(Knapsack, ReusesTheTargetsStreamOnRequest) {
    const FakeModel model = residual_model(3, 4);
    const KnapsackProblem problem = published_problem(4);
    FakeEvaluator computing(model);
    FakeEvaluator reusing(model);
    const auto computed = solve_knapsack(problem, kNoPruning, computing);
    const auto reused = solve_knapsack(problem, {.min_cosine = -1, .reuse_target = true}, reusing);
    EXPECT_EQ(plans(reused), plans(computed));
    EXPECT_EQ(reusing.row(), computing.row());
    EXPECT_EQ(reused[0].score, reusing.n_rows());
    EXPECT_EQ(reusing.n_computed(), computing.n_computed() - 6) << "one for each module tried";
}

TEST(Knapsack, TreatsOnlyTheWholeModelAsTheTarget) {
    // The window saves nothing and scores best, so state 0 is not the target's.
    const KnapsackProblem problem{.items = {{.cheaper = {{kWide, 0}}}, kForced}, .budget = 0};
    FakeModel model = residual_model(1, 1);
    FakeEvaluator evaluator(model);
    evaluator.spoil = [&model](int, int, const Level& level, double score) {
        return level == kWide ? 2.0 * model.n_rows : score;
    };
    const auto candidates = solve_knapsack(problem, {.reuse_target = true}, evaluator);
    ASSERT_THAT(plans(candidates), ElementsAre("wf"));
    EXPECT_THAT(evaluator.row(), ElementsAre(model.run_plan(candidates[0].plan)));
}

// `scores` are those of the last module's results by saved weight; 0 and 1 run the module.
std::vector<int> saved_with_scores(const std::vector<double>& scores,
                                   const KnapsackOptions& options) {
    const KnapsackProblem problem{.items = {kSkippable, {.cheaper = {{Level::skip, 2}}}},
                                  .budget = 3};
    const FakeModel model = constant_model(1);
    FakeEvaluator evaluator(model);
    evaluator.spoil = [&scores](int module, int state, const Level& level, double score) {
        const std::size_t cell = static_cast<std::size_t>(state) + (level == Level::skip ? 2 : 0);
        return module == 1 ? 4 * scores[cell] : score;
    };
    return saved(problem, solve_knapsack(problem, options, evaluator));
}

TEST(Knapsack, DominatedCellsAreDroppedOnRequest) {
    const std::vector<double> scores = {1.0, 0.7, 0.8, 0.6};
    EXPECT_THAT(saved_with_scores(scores, {}), ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(saved_with_scores(scores, {.drop_dominated = true}), ElementsAre(0, 2, 3));
    EXPECT_THAT(saved_with_scores({0.9, 0.7, 0.8, 0.95}, {.drop_dominated = true}), ElementsAre(3));
}

TEST(Knapsack, EqualScoreDoesNotDominate) {
    EXPECT_THAT(saved_with_scores({0.9, 0.9, 0.8, 0.8}, {.drop_dominated = true}),
                ElementsAre(0, 1, 2, 3));
}

TEST(Knapsack, KeepsTheCellsWithTheHighestRank) {
    const auto capped = [](int max_cells, auto rank) {
        return saved_with_scores({1.0, 0.9, 0.8, 0.7}, {.max_cells = max_cells, .rank = rank});
    };
    EXPECT_THAT(capped(2, [](int saved, double) { return saved; }), ElementsAre(2, 3));
    EXPECT_THAT(capped(3, [](int, double mean) { return mean; }), ElementsAre(0, 1, 2));
    EXPECT_THAT(capped(2, [](int saved, double mean) { return mean + (saved == 3 ? 1 : 0); }),
                ElementsAre(0, 3));
    EXPECT_THAT(capped(2, [](int, double) { return 1.0; }), ElementsAre(0, 1)) << "equal ranks";
    EXPECT_THAT(capped(2, [](int saved, double) { return saved < 2 ? kNaN : 1.0; }),
                ElementsAre(2, 3));
    EXPECT_THAT(capped(9, [](int, double) { return 1.0; }), ElementsAre(0, 1, 2, 3));
}

TEST(Knapsack, LimitOnCellsHoldsInEveryRow) {
    const FakeModel model = residual_model(1, 12);
    FakeEvaluator evaluator(model);
    const KnapsackOptions options = {
        .min_cosine = -1,
        .max_cells = 5,
        .rank = [](int saved, double mean) { return mean + 0.02 * saved; },
    };
    EXPECT_THAT(solve_knapsack(published_problem(12), options, evaluator), SizeIs(5));
    EXPECT_EQ(evaluator.max_live(), 10);
}

TEST(MostStates, AreARowAndAModulesResultsOnIt) {
    KnapsackProblem problem{.items = {kSkippable, kSkippable, kSkippable, kSkippable}, .budget = 4};
    EXPECT_EQ(most_states(problem, 0), 4u * 2u);  // the last module runs on four states
    EXPECT_EQ(most_states(problem, 3), 3u * 2u);
    problem.budget = 1;
    EXPECT_EQ(most_states(problem, 0), 2u * 2u);
    problem.budget = 0;
    EXPECT_EQ(most_states(problem, 0), 2u);
    EXPECT_EQ(most_states({.budget = 9}, 0), 1u);
}

TEST(MostStates, CountTheLevelsThatAreComputed) {
    const KnapsackItem item{.cheaper = {{.level = kNarrow, .saved = 2},
                                        {.level = kWide, .saved = 1},
                                        {.level = Level::skip, .saved = 3}}};
    EXPECT_EQ(most_states({.items = {kForced, item}, .budget = 5}, 0), 1u * (1u + 3u));
    EXPECT_EQ(most_states({.items = {item, kForced}, .budget = 5}, 0), 4u * (1u + 1u));
    EXPECT_EQ(most_states({.items = {item, item}, .budget = 2}, 0), 3u * (1u + 3u));
}

TEST(KnapsackSearch, CancelledModulesAreTriedAgain) {
    const KnapsackProblem problem = published_problem(6);
    const FakeModel model = residual_model(3, 6);
    FakeEvaluator steady(model);
    const auto expected = solve_knapsack(problem, kNoPruning, steady);
    FakeEvaluator evaluator(model);
    bool cancels = false;
    evaluator.cancels = [&](int) { return cancels = !cancels; };
    KnapsackSearch search(problem, kNoPruning, evaluator);
    int n_cancelled = 0;
    while (!search.is_done()) {
        EXPECT_GT(search.n_next_states(), 0u);
        n_cancelled += search.advance() ? 0 : 1;
    }
    EXPECT_EQ(n_cancelled, 2 * 6 - problem.first_module);
    EXPECT_EQ(plans(search.candidates()), plans(expected));
    EXPECT_EQ(evaluator.n_computed(), steady.n_computed());
}

}  // namespace
}  // namespace knap::knapsack_test

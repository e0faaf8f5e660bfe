#include "decode/knapspec_paper/paper_search.h"

#include <limits>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "forward/plan_text.h"
#include "search/throughput.h"
#include "support/fake_evaluator.h"

namespace knap::paper_search_test {
namespace {

using test::FakeEvaluator;
using test::FakeModel;

constexpr KindTimes kEqualTimes{.attention_ms = 1, .mlp_ms = 1};

// Weights with cap 5 (docs/methods.md, "Worked examples").
struct WeightVector {
    int n_layers;
    double c1, c2, c3;
    int n_context;
    int attention, mlp, budget;
};
constexpr WeightVector kWeightVectors[] = {
    {32, .520, .942e-4, .216, 512, 1, 2, 48},   {32, .520, .942e-4, .216, 2000, 1, 1, 32},
    {32, .520, .942e-4, .216, 13400, 3, 1, 64}, {32, .279, .735e-4, .279, 16384, 5, 1, 96},
    {28, .248, .855e-4, .186, 32768, 5, 1, 84},
};

TEST(PaperProblem, HasThePublishedWeightsAndBudgets) {
    for (const WeightVector& v : kWeightVectors) {
        const KindTimes times{.attention_ms = v.c2 * v.n_context + v.c3, .mlp_ms = v.c1};
        const KnapsackProblem problem = paper_problem({}, times, v.n_layers);
        EXPECT_EQ(problem.budget, v.budget);
        EXPECT_EQ(problem.first_module, 2);
        ASSERT_EQ(problem.items.size(), 2 * static_cast<std::size_t>(v.n_layers));
        for (std::size_t module = 0; module < problem.items.size(); ++module) {
            const bool is_outer = module < 2 || module + 2 >= problem.items.size();
            const auto& cheaper = problem.items[module].cheaper;
            ASSERT_EQ(cheaper.size(), is_outer ? 0u : 1u) << module;
            if (!is_outer) {
                EXPECT_EQ(cheaper.front().level, Level::skip) << "full and skip are all there is";
                EXPECT_EQ(cheaper.front().saved, module % 2 == 0 ? v.attention : v.mlp);
            }
        }
    }
}

TEST(PaperProblem, OptionsRemoveTheCapAndTheForcedLayers) {
    const KindTimes times{.attention_ms = 12, .mlp_ms = 1};
    const KnapsackProblem capless = paper_problem({.weight_cap = {}}, times, 4);
    EXPECT_EQ(capless.items[2].cheaper.front().saved, 12);
    EXPECT_EQ(capless.budget, (12 + 1) * 4 / 2);
    const KnapsackProblem free = paper_problem({.forces_outer_layers = false}, times, 4);
    EXPECT_EQ(free.first_module, 0);
    EXPECT_EQ(free.items.front().cheaper.size(), 1u);
    EXPECT_EQ(free.items.back().cheaper.size(), 1u);
}

// A search on a model of a few numbers, in which candidate i agrees on the first agreed[i] of ten
// rows. Candidates beyond the list agree on all rows.
struct Searched {
    explicit Searched(int n_layers = 4)
        : model(test::residual_model(/*seed=*/1, n_layers)), evaluator(model) {
        std::iota(target.begin(), target.end(), 100);
    }
    Searched(const Searched&) = delete;  // the evaluator refers to the model

    std::optional<PaperChoice> run(const PaperOptions& options) {
        states_asked.clear();
        return search_as_published(options, {.n_layers = model.n_layers,
                                             .times = kEqualTimes,
                                             .target_choices = target,
                                             .evaluator = evaluator,
                                             .choices_of_state = [&](int state) {
                                                 states_asked.push_back(state);
                                                 return choices_of(state);
                                             }});
    }

    std::vector<KnapsackCandidate> candidates(const PaperOptions& options) const {
        FakeEvaluator again(model);
        return solve_knapsack(paper_problem(options, kEqualTimes, model.n_layers), options.knapsack,
                              again);
    }

    std::vector<Token> choices_of(int state) const {
        if (state == cancelled_at) {
            return {};
        }
        const auto i = static_cast<std::size_t>(state);
        std::vector<Token> choices = target;
        for (std::size_t row = i < agreed.size() ? agreed[i] : kRows; row < kRows; ++row) {
            choices[row] = 1;
        }
        return choices;
    }

    static constexpr std::size_t kRows = 10;

    FakeModel model;
    FakeEvaluator evaluator;
    std::vector<Token> target = std::vector<Token>(kRows);
    std::vector<std::size_t> agreed;
    int cancelled_at = -1;
    std::vector<int> states_asked;
};

const PaperOptions kNoPruning{.knapsack = {.min_cosine = -1}};

TEST(PaperSearch, ChoosesThePlanWithTheMostTokensPerTime) {
    Searched searched;
    const auto candidates = searched.candidates(kNoPruning);
    ASSERT_EQ(candidates.size(), 5u) << "two layers may be skipped: 0 to 4 modules";
    // Skipping three modules agrees on 8 of 10 rows, every other choice on none.
    searched.agreed = {0, 0, 0, 8, 0};
    const auto choice = searched.run(kNoPruning);
    ASSERT_TRUE(choice);
    EXPECT_EQ(choice->plan, candidates[3].plan);
    EXPECT_EQ(choice->acceptance, 0.8);
    EXPECT_EQ(choice->n_candidates, 5);
    // 5 of 8 modules run: the best of (1 - .8^(d + 1)) / .2 / (5 d / 8 + 1) is at d = 1.
    EXPECT_EQ(choice->draft_length, 1);
    EXPECT_NEAR(choice->speedup, 1.8 / 1.625, 1e-12);
    EXPECT_THAT(searched.states_asked, ::testing::ElementsAre(0, 1, 2, 3, 4));
}

TEST(PaperSearch, ChoosesTheSmallestSkipAndLengthAmongEquals) {
    Searched searched;
    searched.agreed = {0, 0, 0, 0, 0};
    const auto choice = searched.run(kNoPruning);
    ASSERT_TRUE(choice);
    EXPECT_EQ(choice->plan, searched.candidates(kNoPruning)[1].plan) << "the first is passed over";
    EXPECT_EQ(choice->draft_length, 0);
    EXPECT_DOUBLE_EQ(choice->speedup, 1);
}

TEST(PaperSearch, PaperRuleConsidersAllCandidatesAndLengthsFromOne) {
    Searched searched;
    searched.agreed = {10, 0, 0, 0, 0};
    PaperOptions options = kNoPruning;
    options.choice = {.lengths = kPaperLengths, .passes_over_first = false};
    const auto choice = searched.run(options);
    ASSERT_TRUE(choice);
    EXPECT_TRUE(choice->plan.is_full());
    EXPECT_EQ(choice->draft_length, 1) << "every length is as fast as plain decoding";
    EXPECT_DOUBLE_EQ(choice->speedup, 1);
}

TEST(PaperSearch, WithTwoLayersEverythingIsForcedAndTheWholeModelIsChosen) {
    for (const int n_layers : {1, 2}) {
        Searched searched(n_layers);
        const auto choice = searched.run({});
        ASSERT_TRUE(choice) << n_layers;
        EXPECT_TRUE(choice->plan.is_full());
        EXPECT_EQ(choice->n_candidates, 1);
        EXPECT_DOUBLE_EQ(choice->speedup, 1);
    }
}

TEST(PaperSearch, NanScoresLeaveNoCandidate) {
    Searched searched;
    searched.evaluator.spoil = [](int module, int, const Level&, double score) {
        return module == 4 ? std::numeric_limits<double>::quiet_NaN() : score;
    };
    EXPECT_FALSE(searched.run({}));
    EXPECT_TRUE(searched.states_asked.empty());
}

TEST(PaperSearch, NothingIsChosenWhenTheHeadIsCancelled) {
    Searched searched;
    searched.cancelled_at = 2;
    EXPECT_FALSE(searched.run(kNoPruning));
    EXPECT_THAT(searched.states_asked, ::testing::ElementsAre(0, 1, 2));
}

// Every state has the same score, so the rules alone decide what is kept.
std::optional<PaperChoice> run_with_equal_scores(double mean_cosine, const KnapsackOptions& rules) {
    Searched searched;
    searched.agreed = {0, 10, 0, 0, 0};  // one module skipped is the best choice
    searched.evaluator.spoil = [&](int, int, const Level&, double) {
        return mean_cosine * searched.model.n_rows;
    };
    return searched.run({.knapsack = rules});
}

TEST(PaperSearch, PrunesBelowTau) {
    EXPECT_TRUE(run_with_equal_scores(0.5, {}));
    EXPECT_FALSE(run_with_equal_scores(0.49, {}));
    EXPECT_FALSE(run_with_equal_scores(0.5, {.strict_threshold = true}));
    EXPECT_TRUE(run_with_equal_scores(0.49, {.min_cosine = 0.4}));
}

TEST(PaperSearch, EqualScoresRunTheModuleOrSkipItAsInThePaper) {
    const auto runs = run_with_equal_scores(0.9, {});
    ASSERT_TRUE(runs);
    EXPECT_EQ(to_string(runs->plan), "a1=skip") << "those behind it run";
    const auto skips = run_with_equal_scores(0.9, {.skip_wins_ties = true});
    ASSERT_TRUE(skips);
    EXPECT_EQ(to_string(skips->plan), "m2=skip");
}

}  // namespace
}  // namespace knap::paper_search_test

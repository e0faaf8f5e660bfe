// Compares the knapsack's states with runs of the whole model with the plans that lead to them
// (docs/methods.md, "Worked examples").
#include "search/similarity.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "search/cosine.h"
#include "search/head_rows.h"
#include "search/module_weights.h"
#include "support/counting_evaluator.h"
#include "support/fake_evaluator.h"
#include "support/logits.h"
#include "support/path_case.h"
#include "support/search_rig.h"
#include "support/tiny_model.h"

namespace knap::test::similarity_test {
namespace {

constexpr int kAnyRows = std::numeric_limits<int>::max();
const KnapsackOptions kNoPruning{.min_cosine = -1};
// Tolerance between two computations of a stream with values of about 1: they differ in the order
// of sums and in rounding to the cache's f16.
constexpr float kRounding = 0.005f;
// Tolerance of the summed cosines of a few such rows: about the square of the above for each.
constexpr double kStateRounding = 1e-4;
// Tolerance of scores. Flash attention sums in f16.
constexpr double kScoreRounding = 2e-3;

bool skips_something(const ModulePlan& plan) {
    for (int layer = 0; layer < plan.n_layers(); ++layer) {
        if (!plan.runs(layer, Module::attention) || !plan.runs(layer, Module::mlp)) {
            return true;
        }
    }
    return false;
}

// --- target rows ---

TEST(TargetRows, EqualThoseOfThePassThatCommittedThem) {
    constexpr int kRows = 9;
    SearchRig rig({.n_text = 80});
    const auto bytes = rig.rig.cache_bytes();
    const TargetRows target = rig.target(kRows);
    EXPECT_EQ(rig.rig.cache_bytes(), bytes);

    rig.rig.cache.truncate(80 - kRows);
    std::vector<int> captures(9);
    std::iota(captures.begin(), captures.end(), 0);
    std::vector<int> rows(kRows);
    std::iota(rows.begin(), rows.end(), 0);
    const ForwardResult pass = rig.rig.forward.run({.tokens = std::span(rig.text).last(kRows),
                                                    .first_row = 80 - kRows,
                                                    .captures = captures,
                                                    .logit_rows = rows});
    ASSERT_EQ(target.streams.size(), captures.size());
    for (std::size_t i = 0; i < captures.size(); ++i) {
        EXPECT_LE(max_abs_difference(target.streams[i], pass.captures[i]), kRounding) << i;
    }
    EXPECT_EQ(target.first_row, 80 - kRows);
    ASSERT_EQ(target.choices.size(), static_cast<std::size_t>(kRows));
    const auto n_vocab = static_cast<std::size_t>(rig.model.config.n_vocab);
    for (std::size_t i = 0; i < kRows; ++i) {
        EXPECT_EQ(target.choices[i], argmax(pass.logits.subspan(i * n_vocab, n_vocab))) << i;
        EXPECT_EQ(target.tokens[i], rig.text[80 - kRows + i]);
    }
}

TEST(TargetRows, HoldOnlyWhatIsRequested) {
    SearchRig rig({.n_text = 20});
    const TargetRows target =
        collect_target_rows(rig.rig.forward, rig.rig.cache, rig.text, {.n_rows = 4});
    EXPECT_TRUE(target.streams.empty());
    EXPECT_EQ(target.choices.size(), 4u);
}

TEST(TargetRows, AreAtMostTheCommittedRows) {
    SearchRig rig({.n_text = 3});
    const TargetRows target = rig.target(16);
    EXPECT_EQ(target.tokens, rig.text);
    EXPECT_EQ(target.first_row, 0);
}

TEST(TargetRows, FitOnePass) {
    SearchRig rig({.n_text = 40, .forward = {.n_ubatch = 8}});
    EXPECT_EQ(rig.target(16).n_rows(), 8);
}

TEST(TargetRows, FitTheScratchRows) {
    SearchRig rig({.n_text = 123, .forward = {.capacity = 128}});
    EXPECT_EQ(rig.target(16).n_rows(), 5);
}

TEST(TargetRows, AreEmptyIfNoneFit) {
    SearchRig full({.n_text = 128, .forward = {.capacity = 128}});
    EXPECT_EQ(full.target(16).n_rows(), 0);
    SearchRig empty({.n_text = 0});
    EXPECT_EQ(empty.target(16).n_rows(), 0);
    SearchRig some({.n_text = 20});
    EXPECT_EQ(some.target(0).n_rows(), 0);
}

TEST(TargetRows, AreEmptyWhenCancelled) {
    SearchRig rig({.n_text = 20});
    rig.model.backend.set_abort([] { return true; });
    EXPECT_TRUE(rig.target(4).tokens.empty());
}

// --- the knapsack on a model ---

TEST(Similarity, WholeModelIsTheOnlyCandidateWithoutABudget) {
    SearchRig rig;
    const TargetRows target = rig.target(16);
    KnapsackProblem problem = problem_with_windows(rig.n_layers(), {}, 0);
    SimilarityEvaluator evaluator(rig.rig.forward, rig.rig.cache, target, kAnyRows);
    const std::int64_t n_before = rig.n_passes();
    const auto candidates = solve_knapsack(problem, kNoPruning, evaluator);
    ASSERT_EQ(candidates.size(), 1u);
    EXPECT_TRUE(candidates[0].plan.is_full());
    EXPECT_NEAR(candidates[0].score, 16, 1e-4);
    EXPECT_EQ(rig.n_passes() - n_before, 2 * rig.n_layers()) << "one for each module";
    EXPECT_EQ(evaluator.choices(0), target.choices);
}

TEST(Similarity, DoesNotComputeAReusedTarget) {
    SearchRig rig;
    const TargetRows target = rig.target(16);
    KnapsackProblem problem = problem_with_windows(rig.n_layers(), {}, 0);
    SimilarityEvaluator evaluator(rig.rig.forward, rig.rig.cache, target, kAnyRows);
    KnapsackOptions options = kNoPruning;
    options.reuse_target = true;
    const std::int64_t n_before = rig.n_passes();
    const auto candidates = solve_knapsack(problem, options, evaluator);
    ASSERT_EQ(candidates.size(), 1u);
    EXPECT_EQ(candidates[0].score, 16);
    EXPECT_EQ(rig.n_passes(), n_before);
    EXPECT_EQ(evaluator.choices(0), choices_of(rig.rig.forward, target.streams.back()));
}

class SimilarityPaths : public ::testing::TestWithParam<PathCase> {
  protected:
    SimilarityPaths()
        : rig_({.model = tiny_model(GetParam().shape),
                .n_text = 280,
                .forward = {.path = GetParam().path}}) {}

    SearchRig rig_;
};

TEST_P(SimilarityPaths, RunningAFoundPlanReproducesItsState) {
    constexpr int kRows = 7;
    const std::vector<Window> windows{{16, 64}, {4, 16}};
    TargetRows target = rig_.target(kRows);
    const auto bytes = rig_.rig.cache_bytes();
    const auto problem = problem_with_windows(rig_.n_layers(), windows, 14);
    SimilarityEvaluator evaluator(rig_.rig.forward, rig_.rig.cache, target, kAnyRows);
    const auto candidates = solve_knapsack(problem, kNoPruning, evaluator);
    ASSERT_EQ(candidates.size(), 15u);
    int n_mixed = 0;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        const ModulePlan& plan = candidates[i].plan;
        const std::vector<float> end = rig_.end_state(plan, kRows);
        EXPECT_NEAR(compare_states(evaluator, target, end, candidates.size())[i], kRows,
                    kStateRounding)
            << i;
        EXPECT_NEAR(candidates[i].score, sum_of_cosines(end, target.streams.back(), kRows),
                    kScoreRounding);
        n_mixed += skips_something(plan) && !distinct_windows(plan).empty() ? 1 : 0;
    }
    EXPECT_GT(n_mixed, 0);
    EXPECT_EQ(rig_.rig.cache_bytes(), bytes);
}

INSTANTIATE_TEST_SUITE_P(Paths, SimilarityPaths, all_path_cases());

// Brute force over every plan of a small problem is never worse than the table and mostly equal.
TEST(Similarity, BruteForceIsMostlyEqualAndNeverWorse) {
    constexpr int kRows = 8;
    SearchRig rig({.n_text = 200});
    const TargetRows target = rig.target(kRows);
    KnapsackProblem problem = problem_with_windows(rig.n_layers(), std::vector<Window>{{8, 32}}, 6);
    for (const std::size_t forced : {0, 1, 6, 7}) {
        problem.items[forced] = {};
    }
    problem.first_module = 2;

    std::map<int, double> best;  // by saved weight
    const auto visit = [&](auto& self, std::size_t module, ModulePlan plan, int saved) -> void {
        if (saved > problem.budget) {
            return;
        }
        if (module == problem.items.size()) {
            const double score =
                sum_of_cosines(rig.end_state(plan, kRows), target.streams.back(), kRows);
            const auto [at, is_new] = best.emplace(saved, score);
            at->second = std::max(at->second, score);
            return;
        }
        self(self, module + 1, plan, saved);
        for (const LevelChoice& choice : problem.items[module].cheaper) {
            plan.set(static_cast<int>(module / 2),
                     module % 2 == 0 ? Module::attention : Module::mlp, choice.level);
            self(self, module + 1, plan, saved + choice.saved);
        }
    };
    visit(visit, 0, ModulePlan(rig.n_layers()), 0);

    SimilarityEvaluator evaluator(rig.rig.forward, rig.rig.cache, target, kAnyRows);
    const auto candidates = solve_knapsack(problem, kNoPruning, evaluator);
    ASSERT_EQ(candidates.size(), best.size());
    int n_equal = 0;
    for (const KnapsackCandidate& candidate : candidates) {
        const int saved = saved_by(problem, candidate.plan);
        EXPECT_LE(candidate.score, best.at(saved) + 1e-4) << saved;
        n_equal += candidate.score > best.at(saved) - 1e-4 ? 1 : 0;
    }
    EXPECT_GT(2 * n_equal, static_cast<int>(best.size()));
}

struct Found {
    std::vector<ModulePlan> plans{};
    std::vector<double> scores{};
    std::int64_t n_module_rows = 0;
    std::int64_t n_passes = 0;
};

constexpr int kAllStates = 1000;

// Expects passes that hold up to `states_per_pass` states each.
Found search(SearchRig& rig, int n_rows, int max_rows, int states_per_pass = kAllStates) {
    const TargetRows target = rig.target(n_rows);
    const auto problem =
        problem_with_windows(rig.n_layers(), std::vector<Window>{{8, 32}}, 3 * rig.n_layers() / 2);
    SimilarityEvaluator evaluator(rig.rig.forward, rig.rig.cache, target, max_rows);
    CountingEvaluator counting(evaluator);
    const std::int64_t n_before = rig.n_passes();
    Found found;
    for (const KnapsackCandidate& candidate : solve_knapsack(problem, kNoPruning, counting)) {
        found.plans.push_back(candidate.plan);
        found.scores.push_back(candidate.score);
    }
    found.n_module_rows = counting.n_module_rows();
    found.n_passes = rig.n_passes() - n_before;
    EXPECT_EQ(found.n_passes, counting.n_passes(states_per_pass));
    return found;
}

TEST(Similarity, IsDeterministic) {
    SearchRig rig;
    const Found first = search(rig, 8, kAnyRows);
    const Found second = search(rig, 8, kAnyRows);
    EXPECT_EQ(first.plans, second.plans);
    EXPECT_EQ(first.scores, second.scores);
}

// Scores may differ: the cache rows of a branch determine the order in which its keys are summed.
void expect_same(const Found& a, const Found& b) {
    EXPECT_EQ(a.plans, b.plans);
    EXPECT_EQ(a.n_module_rows, b.n_module_rows);
    ASSERT_EQ(a.scores.size(), b.scores.size());
    for (std::size_t i = 0; i < a.scores.size(); ++i) {
        EXPECT_NEAR(a.scores[i], b.scores[i], 1e-4) << i;
    }
}

TEST(Similarity, SplitsBatchesBetweenBranches) {
    SearchRig rig;
    const Found whole = search(rig, 8, kAnyRows);
    expect_same(search(rig, 8, 23, 2), whole);  // two branches and most of a third
    expect_same(search(rig, 8, 1, 1), whole);   // at least one branch
}

TEST(Similarity, BatchesFitAPassAndTheScratchRows) {
    SearchRig roomy;
    const Found whole = search(roomy, 8, kAnyRows);
    SearchRig narrow({.forward = {.n_ubatch = 20}});
    expect_same(search(narrow, 8, kAnyRows, 20 / 8), whole);
    SearchRig crowded({.forward = {.capacity = 128}});  // 32 above the text
    expect_same(search(crowded, 8, kAnyRows, 32 / 8), whole);
}

TEST(Similarity, WindowBeyondTheContextIsFullAttention) {
    SearchRig rig({.n_text = 24});
    const TargetRows target = rig.target(8);
    SimilarityEvaluator evaluator(rig.rig.forward, rig.rig.cache, target, kAnyRows);
    evaluator.start(2);
    std::vector<double> scores(3);
    const auto score = [&](std::size_t i) { return std::span(scores).subspan(i, 1); };
    const std::vector<LevelTrial> levels{{Level::full, score(0)},
                                         {Level::windowed(4, 512), score(1)},
                                         {Level::windowed(0, 2), score(2)}};
    evaluator.try_module({.module = 2, .levels = levels});
    EXPECT_NEAR(scores[0], 8, 1e-5);
    EXPECT_NEAR(scores[1], 8, 1e-5);
    EXPECT_LT(scores[2], 8 - 1e-4);
}

TEST(Similarity, WorksOnTheShortestTexts) {
    for (const int n_text : {1, 2, 5}) {
        SearchRig rig({.n_text = n_text});
        const Found found = search(rig, 8, kAnyRows);
        EXPECT_FALSE(found.plans.empty()) << n_text;
    }
}

TEST(Similarity, WorksOnModelsOfOneAndTwoLayers) {
    for (const int n_layers : {1, 2}) {
        SearchRig rig({.model = tiny_model_of_layers(n_layers)});
        const Found found = search(rig, 8, kAnyRows);
        ASSERT_FALSE(found.plans.empty());
        EXPECT_TRUE(found.plans.front().is_full());
        EXPECT_NEAR(found.scores.front(), 8, 1e-4);
    }
}

TEST(Similarity, NaNSpoilsOnlyItsOwnBranch) {
    SearchRig rig;
    TargetRows target = rig.target(8);
    target.streams[0][3] = std::numeric_limits<float>::quiet_NaN();
    SimilarityEvaluator evaluator(rig.rig.forward, rig.rig.cache, target, kAnyRows);
    evaluator.start(0);
    std::vector<double> full(2);
    std::vector<double> skipped(2);
    const std::vector<LevelTrial> first{{Level::full, std::span(full).first(1)},
                                        {Level::skip, std::span(skipped).first(1)}};
    evaluator.try_module({.module = 0, .levels = first, .first_is_target = true});
    EXPECT_EQ(full[0], 8);
    EXPECT_TRUE(std::isnan(skipped[0]));

    // The search would drop the second; here both go through the next module.
    evaluator.keep(std::vector<KeptState>{{.state = 0, .level = 0}, {.state = 0, .level = 1}});
    const std::vector<LevelTrial> second{{Level::full, full}, {Level::skip, skipped}};
    evaluator.try_module({.module = 1, .levels = second});
    EXPECT_NEAR(full[0], 8, 1e-4);
    EXPECT_TRUE(std::isnan(full[1]));
    EXPECT_TRUE(std::isfinite(skipped[0]));
    EXPECT_TRUE(std::isnan(skipped[1]));
    EXPECT_FALSE(evaluator.is_cancelled());
}

TEST(Similarity, CancelledSearchHasNoCandidatesAndDoesNotChangeTheCache) {
    SearchRig rig;
    const TargetRows target = rig.target(8);
    const auto bytes = rig.rig.cache_bytes();
    const auto problem = problem_with_windows(rig.n_layers(), {}, 8);
    SimilarityEvaluator evaluator(rig.rig.forward, rig.rig.cache, target, kAnyRows);
    const std::int64_t n_before = rig.n_passes();
    int n_polls = 0;
    rig.model.backend.set_abort([&] { return ++n_polls > 20; });
    EXPECT_TRUE(solve_knapsack(problem, kNoPruning, evaluator).empty());
    rig.model.backend.set_abort({});
    EXPECT_TRUE(evaluator.is_cancelled());
    const std::int64_t n_passes = rig.n_passes() - n_before;
    EXPECT_GT(n_passes, 1) << "some were complete";
    EXPECT_LT(n_passes, search(rig, 8, kAnyRows).n_passes);
    EXPECT_EQ(rig.rig.cache_bytes(), bytes);
}

TEST(Similarity, CancelledModuleCanBeTriedAgain) {
    SearchRig rig;
    const TargetRows target = rig.target(8);
    const auto problem = problem_with_windows(rig.n_layers(), {}, 8);
    SimilarityEvaluator steady(rig.rig.forward, rig.rig.cache, target, kAnyRows);
    const auto whole = solve_knapsack(problem, kNoPruning, steady);
    SimilarityEvaluator evaluator(rig.rig.forward, rig.rig.cache, target, kAnyRows);
    KnapsackSearch knapsack(problem, kNoPruning, evaluator);
    int n_cancelled = 0;
    bool aborts = false;
    rig.model.backend.set_abort([&] { return aborts; });
    while (!knapsack.is_done()) {
        aborts = !aborts;
        n_cancelled += knapsack.advance() ? 0 : 1;
    }
    EXPECT_GT(n_cancelled, rig.n_layers());
    const auto candidates = knapsack.candidates();
    ASSERT_EQ(candidates.size(), whole.size());
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        EXPECT_EQ(candidates[i].plan, whole[i].plan);
        EXPECT_EQ(candidates[i].score, whole[i].score);
    }
}

TEST(WrittenRows, AreTheAnswersAndNeedNoPass) {
    const std::vector<Token> history{10, 11, 12, 13, 14, 15, 16};  // 16 is pending
    const TargetRows rows = written_rows(history, 3, 2);
    EXPECT_EQ(rows.first_row, 4);
    EXPECT_EQ(rows.tokens, (std::vector<Token>{14, 15}));
    EXPECT_EQ(rows.choices, (std::vector<Token>{15, 16}));
    const TargetRows all = written_rows(history, 3, 100);
    EXPECT_EQ(all.first_row, 2) << "the last token of the prompt chose the first of the answer";
    EXPECT_EQ(all.choices, (std::vector<Token>{13, 14, 15, 16}));
    EXPECT_EQ(written_rows(history, 7, 100).n_rows(), 0) << "no answer yet";
    EXPECT_EQ(written_rows(history, 6, 100).n_rows(), 1);
}

// --- the head ---

TEST(ChoicesOf, TheLastStreamAreTheTargetsChoices) {
    // More rows than go through the head at once, and not a multiple of that.
    for (const int n_ubatch : {512, 50}) {
        SearchRig rig({.forward = {.n_ubatch = n_ubatch}});
        const TargetRows target = rig.target(50);
        const auto bytes = rig.rig.cache_bytes();
        EXPECT_EQ(choices_of(rig.rig.forward, target.streams.back()), target.choices);
        EXPECT_EQ(rig.rig.cache_bytes(), bytes);
    }
}

TEST(ChoicesOf, AreEmptyWhenCancelled) {
    SearchRig rig;
    const TargetRows target = rig.target(4);
    rig.model.backend.set_abort([] { return true; });
    EXPECT_TRUE(choices_of(rig.rig.forward, target.streams.back()).empty());
}

}  // namespace
}  // namespace knap::test::similarity_test

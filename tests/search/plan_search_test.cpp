#include "search/plan_search.h"

#include <algorithm>
#include <set>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "support/counting_evaluator.h"
#include "support/remote_device.h"
#include "support/search_rig.h"

namespace knap::test::plan_search_test {
namespace {

using Source = FoundPlan::Source;

constexpr int kText = 600;  // long enough for windows to read much less
const std::vector<Window> kWindows{{16, 64}, {16, 128}};

// The cache rows that attention reads, rounded up to runs as by our kernel, approximately.
int rows_read(const Level& level, int n_context) {
    constexpr int kRun = 64;
    const auto in_runs = [](int n) { return (n + kRun - 1) / kRun * kRun; };
    if (level.kind != Level::Kind::window || level.window.n_rows() >= n_context) {
        return in_runs(n_context + 1);
    }
    return in_runs(level.window.sinks) + in_runs(level.window.recent + 95);
}

// A machine on which more rows are cheap and attention is expensive, so that cheaper plans pay.
double pass_ms(const ModulePlan& plan, int n_context, int n_rows) {
    double ms = 0.3;  // head and fixed cost
    for (int layer = 0; layer < plan.n_layers(); ++layer) {
        const Level& level = plan.level(layer, Module::attention);
        ms += level == Level::skip ? 0 : 0.1 + 0.01 * rows_read(level, n_context);
        ms += plan.runs(layer, Module::mlp) ? 0.3 : 0;
    }
    return ms * (1 + 0.02 * (n_rows - 1));
}

CostModel cost_model(int n_layers) {
    CostProfile profile{.layer_classes = std::vector<int>(static_cast<std::size_t>(n_layers), 0)};
    ModulePlan no_mlp(n_layers);
    ModulePlan no_attention(n_layers);
    for (int layer = 0; layer < n_layers; ++layer) {
        no_mlp.set(layer, Module::mlp, Level::skip);
        no_attention.set(layer, Module::attention, Level::skip);
    }
    const std::vector<ModulePlan> plans{ModulePlan(n_layers), early_exit_plan(n_layers, 0), no_mlp,
                                        no_attention, uniform_window_plan(n_layers, kWindows[0])};
    for (const int n_context : {128, 256, 512, 900}) {
        for (const ModulePlan& plan : plans) {
            for (const int n_rows : {1, 2, 4, 8, 16}) {
                profile.samples.push_back({.plan = plan,
                                           .n_context = n_context,
                                           .n_rows = n_rows,
                                           .ms = pass_ms(plan, n_context, n_rows)});
            }
        }
    }
    return CostModel(profile);
}

struct SearchCase {
    explicit SearchCase(const SearchRigOptions& options = {})
        : rig(options), costs(cost_model(rig.n_layers())) {}

    std::optional<std::vector<FoundPlan>> search(int n_rows, const PlanSearchOptions& options) {
        return search_plans(rig.rig.forward, rig.rig.cache, rig.text, n_rows, costs, options);
    }

    SearchRig rig;
    CostModel costs;
};

int count(const std::vector<FoundPlan>& found, Source source) {
    return static_cast<int>(std::ranges::count(found, source, &FoundPlan::source));
}

TEST(PlanSearch, FindsPlansOfEverySourceAndReplaysThem) {
    SearchCase search({.n_text = kText});
    const auto bytes = search.rig.rig.cache_bytes();
    ModulePlan known(search.rig.n_layers());
    known.set(2, Module::attention, Level::skip);
    const auto found = search.search(
        16, {.windows = kWindows, .min_cosine = -1, .max_replays = 12, .known = {known}});
    ASSERT_TRUE(found);
    EXPECT_EQ(search.rig.rig.cache_bytes(), bytes);
    EXPECT_EQ(count(*found, Source::known), 1);
    EXPECT_EQ(count(*found, Source::window), 2);
    EXPECT_GT(count(*found, Source::knapsack), 2);
    EXPECT_LE(found->size(), 12u);
    EXPECT_EQ(found->front().plan, known);
    const TargetRows target = search.rig.target(16);
    for (const FoundPlan& plan : *found) {
        const auto again = replay(search.rig.rig.forward, search.rig.rig.cache, plan.plan, target);
        EXPECT_EQ(plan.n_agreed, again->n_agreed);
        EXPECT_EQ(plan.n_rows, 16);
        EXPECT_EQ(plan.draft_step_ms, search.costs.draft_step_ms(plan.plan, kText));
        EXPECT_FALSE(plan.plan.is_full());
    }
}

TEST(PlanSearch, IsDeterministic) {
    SearchCase search({.n_text = kText});
    constexpr int kRows = 8;
    const PlanSearchOptions options{.windows = kWindows, .min_cosine = -1};
    const auto first = search.search(kRows, options);
    const auto second = search.search(kRows, options);
    ASSERT_TRUE(first && second);
    ASSERT_FALSE(first->empty());
    ASSERT_EQ(first->size(), second->size());
    for (std::size_t i = 0; i < first->size(); ++i) {
        EXPECT_EQ((*first)[i].plan, (*second)[i].plan);
        EXPECT_EQ((*first)[i].n_agreed, (*second)[i].n_agreed);
    }
}

TEST(PlanSearch, FindsTheSamePlansWithStreamsOnTheDevice) {
    SearchCase search({.n_text = kText, .device = remote_device()});
    constexpr int kRows = 16;
    const PlanSearchOptions options{.windows = kWindows};
    const auto found = search.search(kRows, options);
    const auto lent = search.rig.rig.forward.borrow_bank(1);
    const auto carried = search.search(kRows, options);
    ASSERT_TRUE(found && carried);
    ASSERT_EQ(found->size(), carried->size());
    EXPECT_GT(count(*found, Source::knapsack), 0);
    for (std::size_t i = 0; i < found->size(); ++i) {
        EXPECT_EQ((*found)[i].plan, (*carried)[i].plan) << i;
        EXPECT_EQ((*found)[i].n_agreed, (*carried)[i].n_agreed) << i;
    }
}

TEST(PlanSearch, SourcesTakeTurns) {
    SearchCase search({.n_text = kText});
    ModulePlan known(search.rig.n_layers());
    known.set(2, Module::attention, Level::skip);
    ModulePlan other = known;
    other.set(1, Module::attention, Level::skip);
    const auto found = search.search(
        4, {.windows = kWindows, .min_cosine = -1, .max_replays = 4, .known = {known, other}});
    ASSERT_TRUE(found);
    std::vector<Source> sources;
    for (const FoundPlan& plan : *found) {
        sources.push_back(plan.source);
    }
    EXPECT_EQ(sources,
              (std::vector{Source::known, Source::window, Source::knapsack, Source::known}));
}

TEST(PlanSearch, ReplaysEachPlanOnce) {
    SearchCase search({.n_text = kText});
    const ModulePlan window = uniform_window_plan(search.rig.n_layers(), kWindows[0]);
    const auto found = search.search(4, {.windows = {kWindows[0], kWindows[0]},
                                         .min_cosine = -1,
                                         .max_replays = 100,
                                         .known = {window, window}});
    ASSERT_TRUE(found);
    std::set<std::size_t> hashes;
    for (const FoundPlan& plan : *found) {
        hashes.insert(plan.plan.hash());
    }
    EXPECT_EQ(hashes.size(), found->size());
    EXPECT_EQ(count(*found, Source::known), 1);
    EXPECT_EQ(count(*found, Source::window), 0);
}

TEST(PlanSearch, UsesWindowsAndKnownPlansWithoutTheKnapsack) {
    SearchCase search({.n_text = kText});
    const auto found = search.search(4, {.windows = kWindows, .runs_knapsack = false});
    ASSERT_TRUE(found);
    EXPECT_EQ(count(*found, Source::window), 2);
    EXPECT_EQ(found->size(), 2u);
}

TEST(PlanSearch, LeavesOutWindowsThatCoverTheContext) {
    SearchCase search({.n_text = kText});
    const Window covering{.sinks = 0, .recent = kText};
    const auto found =
        search.search(4, {.windows = {covering, kWindows[0]}, .runs_knapsack = false});
    ASSERT_TRUE(found);
    ASSERT_EQ(found->size(), 1u);
    EXPECT_EQ(distinct_windows(found->front().plan), std::vector{kWindows[0]});
    // A known plan is made canonical for this context.
    const auto known = search.search(
        4,
        {.runs_knapsack = false, .known = {uniform_window_plan(search.rig.n_layers(), covering)}});
    EXPECT_TRUE(known->empty());
}

TEST(PlanSearch, KnapsackUsesAtMostTheWindowsOfOnePlan) {
    SearchCase search({.n_text = kText});
    const std::vector<Window> six{{4, 100}, {4, 80}, {4, 60}, {4, 40}, {4, 20}, {4, 8}};
    ModulePlan unrunnable(search.rig.n_layers() + 1);
    unrunnable.set(0, Module::attention, Level::skip);
    const auto found = search.search(
        4, {.windows = six, .min_cosine = -1, .max_replays = 100, .known = {unrunnable}});
    ASSERT_TRUE(found);
    EXPECT_EQ(count(*found, Source::known), 0);
    EXPECT_EQ(count(*found, Source::window), 6);
    EXPECT_GT(count(*found, Source::knapsack), 0);
    for (const FoundPlan& plan : *found) {
        for (const Window& window : distinct_windows(plan.plan)) {
            const std::vector<Window> used = knapsack_windows(six, kText);
            EXPECT_TRUE(plan.source == Source::window ||
                        std::ranges::find(used, window) != used.end());
        }
    }
}

TEST(PlanSearch, WindowsOfTheKnapsackAreSpreadOverTheLadder) {
    const auto sizes_at = [](int n_context, std::vector<int> ladder) {
        std::vector<Window> windows;
        for (const int recent : ladder) {
            windows.push_back({.sinks = 16, .recent = recent});
        }
        std::vector<int> sizes;
        for (const Window& window : knapsack_windows(windows, n_context)) {
            sizes.push_back(window.recent);
        }
        return sizes;
    };
    const std::vector<int> ladder{64, 128, 256, 512, 1024};
    EXPECT_EQ(sizes_at(50, ladder), (std::vector<int>{}));
    EXPECT_EQ(sizes_at(300, ladder), (std::vector<int>{64, 128, 256}));
    EXPECT_EQ(sizes_at(1000, ladder), (std::vector<int>{64, 128, 256, 512}));
    EXPECT_EQ(sizes_at(8000, ladder), (std::vector<int>{64, 128, 512, 1024}));
    EXPECT_EQ(sizes_at(8000, {4096, 32, 64, 128, 256, 512, 1024, 2048}),
              (std::vector<int>{32, 128, 1024, 4096}));
}

TEST(PlanSearch, LeavesOutPlansThatCannotPay) {
    SearchCase search({.n_text = kText});
    ModulePlan nearly_whole(search.rig.n_layers());
    nearly_whole.set(0, Module::attention, Level::windowed(300, 280));
    const auto found = search.search(4, {.runs_knapsack = false, .known = {nearly_whole}});
    ASSERT_TRUE(found);
    EXPECT_TRUE(found->empty());
    // Without a draft length nothing can pay.
    const auto no_length = search.search(4, {.windows = kWindows, .max_length = 0});
    ASSERT_TRUE(no_length);
    EXPECT_TRUE(no_length->empty());
}

TEST(PlanSearch, KnapsackPrunesByCosine) {
    SearchCase search({.n_text = kText});
    const auto found = search.search(8, {.min_cosine = 1.5});
    ASSERT_TRUE(found);
    EXPECT_TRUE(found->empty());
}

TEST(PlanSearch, AgreementIsOfTheTokensThatDraftsChoose) {
    SearchCase search({.n_text = kText});
    const TargetRows target = search.rig.target(8);
    const auto found = search.search(
        8, {.windows = kWindows, .runs_knapsack = false, .choose = [&](int position, auto) {
                const int row = position - 1 - target.first_row;
                const auto place = static_cast<std::size_t>(row);
                return target.choices[place] + (row < 4 ? 0 : 1);
            }});
    ASSERT_TRUE(found);
    ASSERT_EQ(found->size(), 2u);
    EXPECT_EQ(found->front().agreement(), 0.5);
}

TEST(PlanSearch, HandlesSmallModelsAndShortTexts) {
    for (const int n_layers : {1, 2, 4}) {
        for (const int n_text : {0, 1, 2, 17}) {
            SearchCase search({.model = tiny_model_of_layers(n_layers), .n_text = n_text});
            const auto found = search.search(32, {.windows = kWindows, .min_cosine = -1});
            ASSERT_TRUE(found);
            for (const FoundPlan& plan : *found) {
                EXPECT_EQ(plan.n_rows, n_text);
            }
        }
    }
}

TEST(PlanSearch, FindsNothingWithAFullCache) {
    SearchCase search({.n_text = 128, .forward = {.capacity = 128}});
    const auto found = search.search(32, {.windows = kWindows});
    ASSERT_TRUE(found);
    EXPECT_TRUE(found->empty());
}

TEST(PlanSearch, IsNulloptWhereverItIsCancelled) {
    SearchCase search({.n_text = kText});
    constexpr int kRows = 8;
    const PlanSearchOptions options{.windows = kWindows, .min_cosine = -1};
    int n_polls = 0;
    search.rig.model.backend.set_abort([&] { return ++n_polls < 0; });
    ASSERT_TRUE(search.search(kRows, options));
    const int n_all = n_polls;
    const auto bytes = search.rig.rig.cache_bytes();
    // During the target rows, the knapsack and the replays.
    for (const int at : {1, n_all / 3, 2 * n_all / 3, n_all - 5}) {
        n_polls = 0;
        search.rig.model.backend.set_abort([&] { return ++n_polls > at; });
        EXPECT_FALSE(search.search(kRows, options)) << at << " of " << n_all;
        EXPECT_EQ(search.rig.rig.cache_bytes(), bytes);
    }
}

TEST(PlanSearch, PiecesCanBeTriedAgainAndTheTextMayGrow) {
    SearchCase search({.n_text = kText});
    const PlanSearchOptions options{.windows = kWindows, .min_cosine = -1};
    const auto whole = search.search(8, options);
    ASSERT_TRUE(whole);
    PlanSearch pieces(search.rig.rig.forward, search.rig.rig.cache, search.costs,
                      search.rig.target(8), options);
    bool aborts = false;
    int n_cancelled = 0;
    search.rig.model.backend.set_abort([&] { return aborts; });
    for (int i = 0; !pieces.is_done(); ++i) {
        EXPECT_GT(pieces.next_rows(), 0);
        aborts = i % 3 == 0;
        n_cancelled += pieces.advance() ? 0 : 1;
        if (i == 4) {
            aborts = false;
            search.rig.rig.feed(std::vector<Token>{5, 6, 7});
        }
    }
    EXPECT_GT(n_cancelled, 2);
    ASSERT_EQ(pieces.found().size(), whole->size());
    for (std::size_t i = 0; i < whole->size(); ++i) {
        EXPECT_EQ(pieces.found()[i].plan, (*whole)[i].plan);
        EXPECT_EQ(pieces.found()[i].n_agreed, (*whole)[i].n_agreed);
    }
}

TEST(PredictedRows, AreWithinAFactorOfTwoOfASearch) {
    SearchRig rig({.n_text = kText});
    constexpr int kRows = 8;
    const PlanSearchOptions options{.windows = kWindows, .max_replays = 0};
    const TargetRows target = rig.target(8);
    SimilarityEvaluator evaluator(rig.rig.forward, rig.rig.cache, target, 1000);
    CountingEvaluator counting(evaluator);
    solve_knapsack(problem_with_windows(rig.n_layers(), kWindows, options.n_bins),
                   {.min_cosine = -1,
                    .max_cells = options.max_cells,
                    .rank = [](int saved, double cosine) { return saved * cosine; }},
                   counting);
    const double n_rows = static_cast<double>(counting.n_module_rows()) / (2 * rig.n_layers());
    EXPECT_LE(predicted_rows(options, kRows, rig.n_layers()), 2 * n_rows);
    EXPECT_GE(predicted_rows(options, kRows, rig.n_layers()), n_rows / 2);
}

TEST(PredictedRows, GrowWithReplays) {
    constexpr int kRows = 10;
    const PlanSearchOptions none{.runs_knapsack = false, .max_replays = 0};
    PlanSearchOptions some = none;
    some.max_replays = 3;
    EXPECT_EQ(predicted_rows(none, kRows, 30), 0);
    EXPECT_EQ(predicted_rows(some, kRows, 30), 30);
    some.runs_knapsack = true;
    EXPECT_GT(predicted_rows(some, kRows, 30), 30);
}

FoundPlan plan_at(double ms, int agreed) {
    return {.plan = ModulePlan(1), .n_agreed = agreed, .n_rows = 10, .draft_step_ms = ms};
}

TEST(Frontier, KeepsPlansThatNoOtherPlanBeats) {
    const auto kept = frontier({plan_at(5, 9), plan_at(1, 3), plan_at(3, 3), plan_at(2, 7),
                                plan_at(2, 5), plan_at(4, 9), plan_at(6, 8)});
    ASSERT_EQ(kept.size(), 3u);
    EXPECT_EQ(kept[0].draft_step_ms, 1);
    EXPECT_EQ(kept[1].draft_step_ms, 2);
    EXPECT_EQ(kept[1].n_agreed, 7);
    EXPECT_EQ(kept[2].draft_step_ms, 4);
}

TEST(Frontier, OfNoPlansIsEmpty) {
    EXPECT_TRUE(frontier({}).empty());
}

}  // namespace
}  // namespace knap::test::plan_search_test

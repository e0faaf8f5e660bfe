#include "tools/offline_search/offline_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "forward/plan_text.h"
#include "support/tiny_model.h"
#include "tools/offline_search/offline_search_file.h"
#include "tools/offline_search/search_trials.h"

namespace knap::test::offline_search_test {
namespace {

constexpr int kLayers = 8;

OfflineSearch planned(SearchMethod method) {
    OfflineSearch search{.model = {.fingerprint = "ab", .n_layers = kLayers},
                         .settings = {.method = method, .n_prompts = 3}};
    if (method == SearchMethod::layerskip) {
        search.settings.exit_layers = {1, 3, 5, 7};
        search.settings.lengths = {2, 5};
    }
    return search;
}

// A machine on which plans with few attentions are fast and longer drafts are better.
std::optional<TrialSpeed> fake_speed(const SpeculationOptions& speculation) {
    const ModulePlan plan = parse_plan(speculation.settings.at("plan"), kLayers);
    double speed = 1 + 0.01 * speculation.draft_max;
    for (int layer = 0; layer < kLayers; ++layer) {
        speed += plan.runs(layer, Module::attention) ? 0 : 0.1;
        speed -= plan.runs(layer, Module::mlp) ? 0 : 0.15;
    }
    return TrialSpeed{.speed = speed, .tokens_per_second = 100 * speed, .acceptance_rate = 0.5};
}

void expect_same_trials(const OfflineSearch& found, const OfflineSearch& expected) {
    EXPECT_EQ(to_json(found), to_json(expected));
}

class OfflineSearches : public ::testing::TestWithParam<SearchMethod> {};

TEST_P(OfflineSearches, ContinueAfterAnInterruptAsIfUninterrupted) {
    constexpr int kTrials = 8;
    OfflineSearch whole = planned(GetParam());
    ASSERT_TRUE(run_trials(whole, kTrials, fake_speed, [] {}));

    const auto path = temporary_folder() / "interrupted.json";
    for (int n_before = 0; n_before < kTrials; ++n_before) {
        std::filesystem::remove(path);
        OfflineSearch first = planned(GetParam());
        int n_left = n_before;
        const auto until_interrupted = [&](const SpeculationOptions& speculation) {
            return n_left-- > 0 ? fake_speed(speculation) : std::nullopt;
        };
        EXPECT_FALSE(
            run_trials(first, kTrials, until_interrupted, [&] { save_search(path, first); }));

        OfflineSearch second = planned(GetParam());
        load_trials(path, second);
        ASSERT_EQ(second.trials.size(), static_cast<std::size_t>(n_before));
        ASSERT_TRUE(run_trials(second, kTrials, fake_speed, [] {}));
        expect_same_trials(second, whole);
    }
}

TEST_P(OfflineSearches, MeasureTheStrategyThatThePlanIsFor) {
    OfflineSearch search = planned(GetParam());
    std::vector<SpeculationOptions> tried;
    const auto measure = [&](const SpeculationOptions& speculation) {
        tried.push_back(speculation);
        return fake_speed(speculation);
    };
    int n_calls = 0;
    ASSERT_TRUE(run_trials(search, 3, measure, [&] { ++n_calls; }));
    EXPECT_EQ(n_calls, 3);
    ASSERT_EQ(search.trials.size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(tried[i].strategy, to_string(GetParam()));
        EXPECT_EQ(tried[i].settings.at("plan"), to_string(search.trials[i].plan));
        EXPECT_EQ(tried[i].draft_max, search.trials[i].draft_max);
    }
    ASSERT_TRUE(run_trials(search, 2, measure, [&] { ++n_calls; }));
    EXPECT_EQ(n_calls, 3) << "there were enough already";
}

INSTANTIATE_TEST_SUITE_P(Methods,
                         OfflineSearches,
                         ::testing::Values(SearchMethod::draft_verify, SearchMethod::layerskip));

TEST(OfflineSearch, TheFastestTrialIsTheBest) {
    OfflineSearch search = planned(SearchMethod::layerskip);
    EXPECT_EQ(best_trial(search), nullptr);
    ASSERT_TRUE(run_trials(search, max_trials(search.settings), fake_speed, [] {}));
    const PlanTrial* best = best_trial(search);
    ASSERT_NE(best, nullptr);
    EXPECT_EQ(to_string(best->plan), "exit=7")
        << "every MLP that is left out costs more than it saves";
    EXPECT_EQ(best->draft_max, 5);
}

TEST(OfflineSearch, TheOptimiserFindsBetterPlansThanItStartsWith) {
    OfflineSearch search = planned(SearchMethod::draft_verify);
    ASSERT_TRUE(run_trials(search, 2, fake_speed, [] {}));
    const double first = best_trial(search)->measured.speed;
    ASSERT_TRUE(run_trials(search, 40, fake_speed, [] {}));
    EXPECT_GT(best_trial(search)->measured.speed, first + 0.1);
}

TEST(OfflineSearch, HashesDistinguishPromptsByTheirTokens) {
    using Prompts = std::vector<std::vector<Token>>;
    EXPECT_EQ(hash_of(Prompts{{1, 2}, {3}}), hash_of(Prompts{{1, 2}, {3}}));
    EXPECT_NE(hash_of(Prompts{{1, 2}, {3}}), hash_of(Prompts{{1}, {2, 3}}));
    EXPECT_NE(hash_of(Prompts{{1, 2}}), hash_of(Prompts{{1, 3}}));
}

}  // namespace
}  // namespace knap::test::offline_search_test

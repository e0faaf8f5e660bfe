#include "tools/offline_search/search_trials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "forward/plan_text.h"

namespace knap::search_trials_test {
namespace {

using ::testing::ElementsAre;

OfflineSearch bayesian(int n_layers, int seed = 0) {
    return {.model = {.fingerprint = "ab", .n_layers = n_layers}, .settings = {.seed = seed}};
}

OfflineSearch grid() {
    return {.model = {.fingerprint = "ab", .n_layers = 6},
            .settings = {
                .method = SearchMethod::layerskip, .exit_layers = {2, 5}, .lengths = {1, 3, 4}}};
}

void add_trial(OfflineSearch& search, double speed) {
    search.trials.push_back(next_trial(search));
    search.trials.back().measured.speed = speed;
}

TEST(SearchTrials, CoordinatesAboveOneHalfSkipAttentionsThenMlps) {
    EXPECT_EQ(plan_at(std::vector{0.51, 0.5, 0.0, 0.2, 0.3, 1.0}),
              parse_plan("a0=skip,m2=skip", 3));
    EXPECT_TRUE(plan_at(std::vector{0.0, 0.5}).is_full());
}

TEST(SearchTrials, DraftVerifyStartsWithTwoFixedPlans) {
    OfflineSearch search = bayesian(10);
    add_trial(search, 0.5);
    add_trial(search, 0.7);
    EXPECT_EQ(to_string(search.trials[0].plan), "a1+3+5+7=skip");
    EXPECT_EQ(to_string(search.trials[1].plan), "l1+5=skip");
    EXPECT_EQ(search.trials[0].draft_max, 12);
    EXPECT_EQ(plan_at(search.trials[1].point), search.trials[1].plan);
}

TEST(SearchTrials, RecordTheirOrigin) {
    OfflineSearch search = bayesian(10);
    OfflineSearch pairs = grid();
    std::vector<TrialOrigin> origins;
    for (int i = 0; i < 4; ++i) {
        add_trial(search, 0.5);
        origins.push_back(search.trials.back().origin);
        add_trial(pairs, 0.5);
        EXPECT_EQ(pairs.trials.back().origin, TrialOrigin::grid);
    }
    EXPECT_THAT(origins, ElementsAre(TrialOrigin::starting_point, TrialOrigin::starting_point,
                                     TrialOrigin::optimiser, TrialOrigin::optimiser));
}

TEST(SearchTrials, SuggestionsDependOnSeedAndScores) {
    OfflineSearch search = bayesian(10);
    add_trial(search, 0.5);
    add_trial(search, 0.7);
    const std::vector<double> suggested = next_trial(search).point;
    EXPECT_THAT(suggested, ::testing::SizeIs(20));
    EXPECT_EQ(next_trial(search).point, suggested);
    OfflineSearch other_seed = bayesian(10, /*seed=*/1);
    other_seed.trials = search.trials;
    EXPECT_NE(next_trial(other_seed).point, suggested);
    OfflineSearch other_scores = search;
    std::swap(other_scores.trials[0].measured, other_scores.trials[1].measured);
    EXPECT_NE(next_trial(other_scores).point, suggested);
    add_trial(search, 0.6);
    EXPECT_NE(next_trial(search).point, suggested);
}

TEST(SearchTrials, SmallModelsHaveStartingPointsToo) {
    for (const int n_layers : {1, 2}) {
        OfflineSearch search = bayesian(n_layers);
        add_trial(search, 0.9);
        EXPECT_TRUE(search.trials[0].plan.is_full()) << "there are no inner layers";
        add_trial(search, 0.9);
        EXPECT_EQ(next_trial(search).plan.n_layers(), n_layers);
    }
}

TEST(SearchTrials, LayerskipTriesEveryPairOnce) {
    OfflineSearch search = grid();
    std::vector<std::string> tried;
    for (int i = 0; i < max_trials(search.settings); ++i) {
        add_trial(search, 1);
        const PlanTrial& trial = search.trials.back();
        tried.push_back(to_string(trial.plan) + " " + std::to_string(trial.draft_max));
        EXPECT_TRUE(trial.point.empty());
    }
    EXPECT_THAT(
        tried, ElementsAre("exit=2 1", "exit=2 3", "exit=2 4", "exit=5 1", "exit=5 3", "exit=5 4"));
}

TEST(SearchTrials, ExitLayersAreSpreadOverTheModel) {
    EXPECT_THAT(default_exit_layers(32), ElementsAre(4, 8, 12, 16, 20, 24, 28));
    EXPECT_THAT(default_exit_layers(30), ElementsAre(3, 6, 9, 12, 15, 18, 21, 24, 27));
    EXPECT_THAT(default_exit_layers(4), ElementsAre(1, 2, 3));
    EXPECT_THAT(default_exit_layers(1), ElementsAre(1));
}

TEST(SearchTrials, TheDefaultIsTheWholeGridOrAHundredTrials) {
    EXPECT_EQ(default_trials(grid().settings), 6);
    EXPECT_EQ(default_trials(bayesian(4).settings), 100);
    EXPECT_GE(max_trials(bayesian(4).settings), 1000) << "the paper's number";
}

}  // namespace
}  // namespace knap::search_trials_test

#include "decode/swift/swift_search.h"

#include <algorithm>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "forward/plan_text.h"

namespace knap::swift_search_test {
namespace {

using ::testing::ElementsAre;

constexpr int kLayers = 6;
constexpr int kInner = kLayers - 2;
constexpr int kSkipped = 3;  // 0.45 of 8 modules

TEST(SwiftSearch, StartsWithEverySecondInnerLayerSkipped) {
    EXPECT_EQ(to_string(SwiftSearch(6, {}).plan()), "l1+3=skip");
    EXPECT_EQ(to_string(SwiftSearch(7, {}).plan()), "l1+3+5=skip");
    EXPECT_EQ(to_string(SwiftSearch(4, {}).plan()), "l1=skip");
}

TEST(SwiftSearch, SkipsTheFloorOfTheRatio) {
    EXPECT_EQ(count_skipped_modules(kLayers, 0.45), kSkipped) << "8 * 0.45 = 3.6";
    EXPECT_EQ(count_skipped_modules(30, 0.45), 25) << "56 * 0.45 = 25.2";
    EXPECT_EQ(count_skipped_modules(80, 0.5), 78);
    EXPECT_EQ(count_skipped_modules(12, static_cast<double>(0.45f)), 9)
        << "20 * 0.45 = 9, though the nearest float is less";
    EXPECT_EQ(count_skipped_modules(3, 1.0), 2);
    EXPECT_EQ(count_skipped_modules(3, 0.45), 0);
    EXPECT_EQ(count_skipped_modules(2, 1.0), 0);
    EXPECT_EQ(count_skipped_modules(1, 1.0), 0);
}

// Attentions first, then MLPs, from layer 1 on.
std::vector<bool> skipped_modules(const ModulePlan& plan) {
    std::vector<bool> skipped;
    for (const Module module : {Module::attention, Module::mlp}) {
        for (int layer = 1; layer <= kInner; ++layer) {
            skipped.push_back(!plan.runs(layer, module));
        }
    }
    return skipped;
}

void expect_outer_layers_run(const ModulePlan& plan) {
    for (const int layer : {0, plan.n_layers() - 1}) {
        EXPECT_TRUE(plan.runs(layer, Module::attention) && plan.runs(layer, Module::mlp));
    }
}

TEST(SwiftSearch, RandomCandidatesSkipEveryInnerModuleEquallyOften) {
    constexpr int kCandidates = 800;
    SwiftSearch search(kLayers, {.patience = kCandidates, .bayes_interval = kCandidates + 1});
    std::vector<int> counts(2 * kInner);
    for (int i = 0; i < kCandidates; ++i) {
        const SwiftCandidate& candidate = search.candidate();
        EXPECT_FALSE(candidate.is_suggested);
        expect_outer_layers_run(candidate.plan);
        const std::vector<bool> skipped = skipped_modules(candidate.plan);
        ASSERT_EQ(std::ranges::count(skipped, true), kSkipped);
        for (std::size_t module = 0; module < counts.size(); ++module) {
            counts[module] += skipped[module] ? 1 : 0;
            ASSERT_EQ(candidate.point[module], skipped[module] ? 1.0 : 0.0);
        }
        search.add_score(0);
    }
    // 300 each on average, with a standard deviation of 14.
    EXPECT_GT(*std::ranges::min_element(counts), 240);
    EXPECT_LT(*std::ranges::max_element(counts), 360);
}

TEST(SwiftSearch, EveryTwentyFifthCandidateComesFromTheOptimiser) {
    SwiftSearch search(kLayers, {});
    std::vector<int> suggested;
    for (int i = 1; i <= 80; ++i) {
        if (search.candidate().is_suggested) {
            suggested.push_back(i);
        }
        search.add_score(0.1);
    }
    EXPECT_THAT(suggested, ElementsAre(25, 50, 75));
}

TEST(SwiftSearch, SkipsTheLargestCoordinatesOfTheOptimisersPoint) {
    SwiftSearch search(kLayers, {.bayes_interval = 1});
    for (int i = 0; i < 20; ++i) {
        const SwiftCandidate candidate = search.candidate();
        expect_outer_layers_run(candidate.plan);
        const std::vector<bool> skipped = skipped_modules(candidate.plan);
        ASSERT_EQ(std::ranges::count(skipped, true), kSkipped);
        double least_skipped = 1;
        double most_run = 0;
        for (std::size_t module = 0; module < skipped.size(); ++module) {
            (skipped[module] ? least_skipped : most_run) =
                skipped[module] ? std::min(least_skipped, candidate.point[module])
                                : std::max(most_run, candidate.point[module]);
        }
        EXPECT_GE(least_skipped, most_run);
        search.add_score(0.04 * i);
    }
}

TEST(SwiftSearch, OptimiserReceivesEveryScore) {
    const auto suggestion = [](double score_of_twelfth) {
        SwiftSearch search(kLayers, {.bayes_interval = 14});
        for (int i = 1; i <= 13; ++i) {
            search.candidate();
            search.add_score(i == 12 ? score_of_twelfth : 0.1);
        }
        return search.candidate().point;
    };
    EXPECT_EQ(suggestion(0.5), suggestion(0.5));
    EXPECT_NE(suggestion(0.5), suggestion(0.05));
}

// Adds the scores, one per candidate. Returns which candidates were adopted.
std::vector<bool> adopted(SwiftSearch& search, const std::vector<double>& scores) {
    std::vector<bool> results;
    for (const double score : scores) {
        const ModulePlan before = search.plan();
        const ModulePlan candidate = search.candidate().plan;
        results.push_back(search.add_score(score));
        EXPECT_EQ(search.plan(), results.back() ? candidate : before);
    }
    return results;
}

TEST(SwiftSearch, AdoptsCandidatesThatBeatAllBefore) {
    SwiftSearch search(kLayers, {});
    EXPECT_THAT(adopted(search, {0, 0.25, 0.125, 0.25, 0.5, 0.375}),
                ElementsAre(false, true, false, false, true, false));
    EXPECT_EQ(search.best_score(), 0.5);
    EXPECT_EQ(search.n_iterations(), 6);
    EXPECT_FALSE(search.end());
}

TEST(SwiftSearch, EndsAboveTheMaximumScore) {
    SwiftSearch search(kLayers, {.max_score = 0.75});
    adopted(search, {0.5, 0.75});
    EXPECT_FALSE(search.end());
    adopted(search, {0.875});
    EXPECT_EQ(search.end(), SwiftEnd::good_score);
}

TEST(SwiftSearch, EndsWhenPatienceIsExceeded) {
    SwiftSearch search(kLayers, {.patience = 2});
    adopted(search, {0, 0, 0.5, 0.25, 0.5});
    EXPECT_FALSE(search.end()) << "a better one begins the count anew";
    adopted(search, {0.25});
    EXPECT_EQ(search.end(), SwiftEnd::out_of_patience);
}

TEST(SwiftSearch, EndsWhenMaxIterationsAreExceeded) {
    SwiftSearch search(kLayers, {.max_iterations = 3});
    adopted(search, {0.1, 0.2, 0.3});
    EXPECT_FALSE(search.end());
    adopted(search, {0.4});
    EXPECT_EQ(search.end(), SwiftEnd::out_of_iterations);
}

TEST(SwiftSearch, CandidateStaysUntilItHasAScore) {
    SwiftSearch search(kLayers, {.bayes_interval = 2});
    for (int i = 0; i < 4; ++i) {
        const SwiftCandidate first = search.candidate();
        EXPECT_EQ(search.candidate().plan, first.plan);
        EXPECT_EQ(search.candidate().point, first.point);
        search.add_score(0.5);
        EXPECT_NE(search.candidate().point, first.point);
    }
}

TEST(SwiftSearch, CandidatesDependOnTheSeed) {
    SwiftSearch one(30, {.seed = 1});
    SwiftSearch same(30, {.seed = 1});
    SwiftSearch other(30, {.seed = 2});
    EXPECT_EQ(one.candidate().plan, same.candidate().plan);
    EXPECT_NE(one.candidate().plan, other.candidate().plan);
}

}  // namespace
}  // namespace knap::swift_search_test

#include "support/search_agreement.h"

#include <limits>

#include <gtest/gtest.h>

#include "support/counting_evaluator.h"

namespace knap::test {

DeviceSearch search_on_device(SearchRig& rig, int n_rows, Streams streams) {
    return search_on_device(rig.rig.forward, rig.rig.cache, rig.text, n_rows, streams);
}

DeviceSearch search_on_device(Forward& forward,
                              const Sequence& cache,
                              std::span<const Token> text,
                              int n_rows,
                              Streams streams) {
    constexpr int kAnyRows = std::numeric_limits<int>::max();
    const int n_layers = forward.config().n_layers;
    const auto problem =
        problem_with_windows(n_layers, std::vector<Window>{{8, 32}}, 3 * n_layers / 2);
    const std::size_t n_states = most_states(problem, 0);
    const TargetRows target =
        collect_target_rows(forward, cache, text,
                            {.n_rows = n_rows,
                             .streams = true,
                             .n_more_streams = streams == Streams::collected ? n_states : 0});
    DeviceSearch found;
    if (target.tokens.empty()) {
        found.is_cancelled = true;
        return found;
    }
    SimilarityEvaluator evaluator(forward, cache, target, kAnyRows,
                                  streams == Streams::carried ? 0 : n_states);
    const std::size_t before = forward.statistics().bytes_read;
    CountingEvaluator counting(evaluator);
    const auto candidates = solve_knapsack(problem, {.min_cosine = -1}, counting);
    found.bytes_read = forward.statistics().bytes_read - before;
    for (const KnapsackCandidate& candidate : candidates) {
        found.choices.push_back(evaluator.choices(static_cast<int>(found.plans.size())));
        found.plans.push_back(candidate.plan);
        found.scores.push_back(candidate.score);
    }
    found.n_module_rows = counting.n_module_rows();
    found.is_cancelled = evaluator.is_cancelled();
    return found;
}

void expect_same(const DeviceSearch& a, const DeviceSearch& b) {
    EXPECT_EQ(a.plans, b.plans);
    EXPECT_EQ(a.choices, b.choices);
    EXPECT_EQ(a.n_module_rows, b.n_module_rows);
    ASSERT_EQ(a.scores.size(), b.scores.size());
    for (std::size_t i = 0; i < a.scores.size(); ++i) {
        EXPECT_NEAR(a.scores[i], b.scores[i], 1e-4) << i;
    }
}

}  // namespace knap::test

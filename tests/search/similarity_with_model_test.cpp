// Branch states and replays on the default model: real weights, 30 layers, 4-bit.
#include <algorithm>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "knap/knap.h"

#include "search/replay.h"
#include "search/similarity.h"
#include "support/default_model.h"
#include "support/search_rig.h"

namespace knap::test::similarity_with_model_test {
namespace {

constexpr int kRows = 16;

const char* const kText =
    "The river rose in the night. By morning the lower fields stood under water, and the people of "
    "the valley carried what they could to the church on the hill. Nobody was surprised. The old "
    "miller had said for a week that the wind smelled of snow melting far away, and the old miller "
    "was never wrong about water. He had lived beside it for seventy years, and he spoke of it as "
    "other men speak of a difficult neighbour: with respect, without love, and at great length. "
    "When the rain stopped, the children went down to the edge to see how far it had come. They "
    "found the bridge standing and the road gone, and a boat tied to the top of a pear tree, where "
    "somebody who knew the river had left it the evening before.";

// A multiple of a tile of keys, so that replayed rows and real drafts sum in the same order.
std::vector<Token> tokens_of_text() {
    Engine engine({.model_path = default_model(), .n_ctx = 256, .n_threads = 1});
    std::vector<Token> tokens = engine.tokenize(kText);
    tokens.resize(tokens.size() / 16 * 16);
    return tokens;
}

SearchRigOptions default_rig() {
    return {.model = default_model(), .text = tokens_of_text(), .repack = Repack::on};
}

TEST(PlansOfTheDefaultModel, RunningAFoundPlanReproducesItsState) {
    SearchRig rig(default_rig());
    const auto bytes = rig.rig.cache_bytes();
    TargetRows target = rig.target(kRows);
    const auto problem =
        problem_with_windows(rig.n_layers(), std::vector<Window>{{.sinks = 4, .recent = 28}}, 6);
    SimilarityEvaluator evaluator(rig.rig.forward, rig.rig.cache, target,
                                  std::numeric_limits<int>::max());
    const auto candidates = solve_knapsack(problem, {.reuse_target = true}, evaluator);
    ASSERT_EQ(candidates.size(), 7u);
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        const std::vector<float> end = rig.end_state(candidates[i].plan, kRows);
        // Activations are rounded to 8 bits between modules, so a difference in the last bit may
        // become a whole step.
        EXPECT_GT(compare_states(evaluator, target, end, candidates.size())[i], 0.9999 * kRows)
            << i;
    }
    EXPECT_EQ(rig.rig.cache_bytes(), bytes);
}

TEST(PlansOfTheDefaultModel, ReplayedRowsChooseTheTokensOfRealFirstDrafts) {
    SearchRig rig(default_rig());
    const TargetRows target = rig.target(kRows);
    ModulePlan plan = uniform_window_plan(rig.n_layers(), {.sinks = 4, .recent = 28});
    plan.set(20, Module::attention, Level::skip);
    plan.set(21, Module::mlp, Level::skip);
    std::vector<Token> chosen;
    const auto replayed = replay(
        rig.rig.forward, rig.rig.cache, plan, target, [&](int, std::span<const float> draft) {
            chosen.push_back(static_cast<Token>(std::ranges::max_element(draft) - draft.begin()));
            return chosen.back();
        });
    ASSERT_TRUE(replayed);
    EXPECT_EQ(chosen, rig.first_drafts(plan, kRows));
    EXPECT_NE(chosen, target.choices);
    // Replayed rows are after the text in the cache, so their sums have another order: a near tie
    // may go the other way.
    EXPECT_GE(replay(rig.rig.forward, rig.rig.cache, ModulePlan(rig.n_layers()), target)->n_agreed,
              kRows - 1);
}

}  // namespace
}  // namespace knap::test::similarity_with_model_test

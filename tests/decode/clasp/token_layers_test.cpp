// CLaSp's states on a real model: the final state that the search assigns to a plan is the one that
// the plan computes.
#include "decode/clasp/token_layers.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "forward/plan_text.h"
#include "search/cosine.h"
#include "support/search_rig.h"

namespace knap::test::token_layers_test {
namespace {

class TokenLayersOnModel : public ::testing::Test {
  protected:
    TokenLayersOnModel() {
        const TargetRows last = rig_.target(1);
        for (std::size_t i = 0; i < last.streams.size(); i += 2) {
            target_.insert(target_.end(), last.streams[i].begin(), last.streams[i].end());
        }
    }

    TokenLayers layers() {
        return {rig_.rig.forward, rig_.rig.cache, target_, static_cast<int>(rig_.text.size()) - 1};
    }

    SearchRig rig_;
    std::vector<float> target_;  // [n_embd, L + 1]
};

TEST_F(TokenLayersOnModel, LayerOnTheWholeModelsStreamGivesItsNextStream) {
    TokenLayers states = layers();
    for (int layer = 0; layer < states.n_layers(); ++layer) {
        const auto next = states.run(layer, states.target(layer));
        EXPECT_NEAR(cosine(next, states.target(layer + 1)), 1, 1e-5);
    }
}

// States share a pass but do not attend to each other.
TEST_F(TokenLayersOnModel, StatesOfAPassAreIndependent) {
    TokenLayers states = layers();
    std::vector<float> both(states.target(1).begin(), states.target(1).end());
    both.insert(both.end(), states.target(3).begin(), states.target(3).end());
    const auto together = states.run(2, both);
    const std::vector<float> kept(together.begin(), together.end());
    const auto n_embd = static_cast<std::ptrdiff_t>(states.target(0).size());
    const auto first = states.run(2, states.target(1));
    EXPECT_NEAR(cosine(std::span(kept).first(static_cast<std::size_t>(n_embd)), first), 1, 1e-6);
    const auto second = states.run(2, states.target(3));
    EXPECT_NEAR(cosine(std::span(kept).last(static_cast<std::size_t>(n_embd)), second), 1, 1e-6);
}

TEST_F(TokenLayersOnModel, FoundPlanEndsInTheStateOfItsCell) {
    for (int n_skipped = 1; n_skipped < rig_.n_layers(); ++n_skipped) {
        TokenLayers states = layers();
        const auto found = find_skipped_layers(states, n_skipped);
        ASSERT_TRUE(found);
        const std::vector<float> end = rig_.end_state(found->plan, 1);
        EXPECT_NEAR(cosine(end, states.target(rig_.n_layers())), found->cosine, 1e-5)
            << to_string(found->plan);
    }
}

TEST_F(TokenLayersOnModel, LeavesTheCommittedRowsUnchanged) {
    const auto before = rig_.rig.cache_bytes();
    TokenLayers states = layers();
    find_skipped_layers(states, 2);
    EXPECT_EQ(rig_.rig.cache_bytes(), before);
}

TEST_F(TokenLayersOnModel, CanBeCancelled) {
    rig_.model.backend.set_abort([] { return true; });
    TokenLayers states = layers();
    EXPECT_FALSE(find_skipped_layers(states, 1));
    rig_.model.backend.set_abort({});
    EXPECT_TRUE(find_skipped_layers(states, 1));
}

}  // namespace
}  // namespace knap::test::token_layers_test

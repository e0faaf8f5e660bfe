#include "decode/clasp/layer_search.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "forward/plan_text.h"
#include "search/cosine.h"

namespace knap::layer_search_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using State = std::vector<float>;

// Layers that each rotate a state in the plane by a fixed angle, whatever the state.
class Turns final : public LayerStates {
  public:
    explicit Turns(std::vector<double> angles) : angles_(std::move(angles)) {
        double sum = 0;
        targets_.push_back(at(sum));
        for (const double angle : angles_) {
            targets_.push_back(at(sum += angle));
        }
    }

    static State at(double angle) {
        return {static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))};
    }

    int n_layers() const override { return static_cast<int>(angles_.size()); }
    std::span<const float> target(int layer) const override {
        return targets_[static_cast<std::size_t>(layer)];
    }
    std::span<const float> run(int layer, std::span<const float> states) override {
        batches.push_back(static_cast<int>(states.size() / 2));
        results_.clear();
        for (std::size_t i = 0; i < states.size() && !is_cancelled; i += 2) {
            const double angle = std::atan2(states[i + 1], states[i]);
            const State turned = at(angle + angles_[static_cast<std::size_t>(layer)]);
            results_.insert(results_.end(), turned.begin(), turned.end());
        }
        return results_;
    }

    bool is_cancelled = false;
    std::vector<int> batches;  // number of states in each call

  private:
    std::vector<double> angles_;
    std::vector<State> targets_;
    State results_;
};

// Angles add up, so the angle between a plan's final state and the whole model's is the sum of the
// skipped angles.
double best_cosine(const std::vector<double>& angles, int n_skipped) {
    double best = -1;
    for (unsigned mask = 0; mask < 1u << angles.size(); ++mask) {
        if (std::popcount(mask) != n_skipped) {
            continue;
        }
        double apart = 0;
        for (std::size_t layer = 0; layer < angles.size(); ++layer) {
            apart += (mask >> layer & 1u) != 0 ? angles[layer] : 0;
        }
        best = std::max(best, std::cos(apart));
    }
    return best;
}

// The greedy table is exact when skipping a layer can only increase the angle to the whole model.
TEST(LayerSearch, FindsWhatExhaustiveSearchFinds) {
    std::mt19937 random(3);
    std::uniform_real_distribution<double> angle(0.01, 0.6);
    for (int trial = 0; trial < 50; ++trial) {
        const std::vector<double> angles{angle(random), angle(random), angle(random),
                                         angle(random)};
        for (int n_skipped = 1; n_skipped <= 4; ++n_skipped) {
            Turns layers(angles);
            const auto found = find_skipped_layers(layers, n_skipped);
            ASSERT_TRUE(found);
            EXPECT_NEAR(found->cosine, best_cosine(angles, n_skipped), 1e-6);
            double apart = 0;
            int n_found = 0;
            for (int layer = 0; layer < 4; ++layer) {
                EXPECT_EQ(found->plan.runs(layer, Module::attention),
                          found->plan.runs(layer, Module::mlp));
                if (!found->plan.runs(layer, Module::mlp)) {
                    apart += angles[static_cast<std::size_t>(layer)];
                    ++n_found;
                }
            }
            EXPECT_EQ(n_found, n_skipped);
            EXPECT_NEAR(found->cosine, std::cos(apart), 1e-6) << "the plan is that of the cell";
        }
    }
}

// After layer 1, the cell of one skip keeps the state that skipped layer 1, which is off by 0.4
// instead of 0.5; the other state never reaches layer 2. The best plan skips {0, 2}, whose angles
// cancel.
TEST(LayerSearch, KeepsOneStatePerCell) {
    Turns layers({0.5, 0.4, -0.5});
    const auto found = find_skipped_layers(layers, 2);
    EXPECT_EQ(to_string(found->plan), "exit=1");
    EXPECT_NEAR(found->cosine, std::cos(0.1), 1e-6);
    EXPECT_NEAR(best_cosine({0.5, 0.4, -0.5}, 2), 1, 1e-6);
}

TEST(LayerSearch, PrefersSkippingWhenStatesAreEqual) {
    Turns layers({0.3, 0.3, 0.3});  // all plans are equal
    EXPECT_EQ(to_string(find_skipped_layers(layers, 1)->plan), "exit=2");
}

TEST(LayerSearch, RunsTheStatesOfALayerInOneBatchExceptTheKnownOne) {
    Turns layers({0.1, 0.2, 0.3, 0.4, 0.5});
    find_skipped_layers(layers, 2);
    // Before layer i there are states that skip 1..min(i, 2) layers; the state that skips none is
    // the whole model's and already known.
    EXPECT_THAT(layers.batches, ElementsAre(1, 2, 2, 2));
}

TEST(LayerSearch, AllLayersMayBeSkipped) {
    Turns layers({0.1, 0.2});
    const auto found = find_skipped_layers(layers, 2);
    EXPECT_EQ(to_string(found->plan), "exit=0");
    EXPECT_NEAR(found->cosine, std::cos(0.3), 1e-6);
}

TEST(LayerSearch, EndsWhenCancelled) {
    Turns layers({0.1, 0.2, 0.3});
    layers.is_cancelled = true;
    EXPECT_FALSE(find_skipped_layers(layers, 1));
    EXPECT_THAT(layers.batches, ElementsAre(1));
}

}  // namespace
}  // namespace knap::layer_search_test

// Random plans in every layout, compared with a simple forward pass that decides for every pair of
// rows whether one attends to the other.
#include <algorithm>
#include <optional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "support/loaded_model.h"
#include "support/logits.h"
#include "support/naive_layout.h"
#include "support/path_case.h"
#include "support/reference_forward.h"
#include "support/tiny_model.h"

namespace knap::test::plan_oracle_test {
namespace {

using Kind = AttentionLayout::Kind;

constexpr int kCapacity = 512;

std::optional<Window> window_of(const ModulePlan& plan, int layer) {
    const Level& level = plan.level(layer, Module::attention);
    return level.kind == Level::Kind::window ? std::optional(level.window) : std::nullopt;
}

ModulePlan random_plan(std::mt19937& engine, int n_layers) {
    ModulePlan plan(n_layers);
    const Window first = random_window(engine);
    const Window second = random_window(engine);
    for (int layer = 0; layer < n_layers; ++layer) {
        const Level levels[] = {Level::full, Level::skip,
                                Level::windowed(first.sinks, first.recent),
                                Level::windowed(second.sinks, second.recent)};
        plan.set(layer, Module::attention, levels[random_between(engine, 0, 3)]);
        // Where layers have no experts the last level is the whole MLP.
        const Level mlps[] = {Level::full, Level::skip, Level::with_experts(2)};
        plan.set(layer, Module::mlp, mlps[random_between(engine, 0, 2)]);
    }
    return plan;
}

class PlanOracle : public ::testing::TestWithParam<PathCase> {
  protected:
    PlanOracle()
        : model_(tiny_model(GetParam().shape, "F32")),
          rig_(model_, {.capacity = kCapacity, .n_ubatch = 512, .path = GetParam().path}),
          reference_(model_, kCapacity) {
        // Both caches hold the same text to their last row; passes then overwrite a part of it.
        const auto text = random_tokens(kCapacity, model_.config.n_vocab, 1);
        rig_.feed(text);
        reference_.feed(text);
    }

    // The rows in which some logit differs by more than `bound`.
    std::size_t count_far(const RandomPass& pass,
                          const ModulePlan& plan,
                          unsigned seed,
                          float bound) {
        const auto tokens = random_tokens(pass.n_rows, model_.config.n_vocab, seed);
        const auto rows = rig_.run(
            {.tokens = tokens, .plan = &plan, .first_row = pass.first_row, .layout = pass.layout});
        std::vector<std::int32_t> positions(tokens.size());
        fill_positions(pass.layout, pass.first_row, positions);
        const auto expected = reference_.run({
            .tokens = tokens,
            .first_row = pass.first_row,
            .positions = positions,
            .sees =
                [&](int layer, int row, int j) {
                    return naively_sees(pass.layout,
                                        {window_of(plan, layer), model_.config.layer(layer).window},
                                        pass.first_row, row, j);
                },
            .plan = &plan,
        });
        n_rows_ += expected.size();
        std::size_t n_far = 0;
        for (std::size_t row = 0; row < expected.size(); ++row) {
            n_far += max_abs_difference(rows[row], expected[row]) > bound ? 1 : 0;
        }
        return n_far;
    }

    LoadedModel model_;
    ForwardRig rig_;
    ReferenceForward reference_;
    std::size_t n_rows_ = 0;  // compared
};

TEST_P(PlanOracle, RandomPlansInEveryLayoutAgree) {
    // For logits with a spread of about 1. The reference, like the folded path, rounds attention
    // weights to half precision; our kernel does not, and flash attention sums in half precision.
    const float bound = GetParam().path == AttentionPath::folded   ? 0.005f
                        : GetParam().path == AttentionPath::kernel ? 0.02f
                                                                   : 0.1f;
    const bool has_experts = model_.config.n_experts_used() > 0;
    std::size_t n_far = 0;
    std::mt19937 engine(3);
    for (const Kind kind : {Kind::causal, Kind::tree, Kind::branches, Kind::replay}) {
        for (unsigned trial = 0; trial < 12; ++trial) {
            const RandomPass pass = random_pass(engine, kind, kCapacity, trial % 3 == 0 ? 1 : 40);
            const ModulePlan plan = random_plan(engine, model_.config.n_layers);
            n_far += count_far(pass, plan, trial, bound);
            ASSERT_TRUE(n_far == 0 || has_experts)
                << "layout " << static_cast<int>(kind) << ", trial " << trial;
        }
    }
    // Rounding may choose another expert, in a row or in one that it attends to.
    EXPECT_LE(20 * n_far, n_rows_);
}

INSTANTIATE_TEST_SUITE_P(Paths, PlanOracle, all_path_cases());

}  // namespace
}  // namespace knap::test::plan_oracle_test

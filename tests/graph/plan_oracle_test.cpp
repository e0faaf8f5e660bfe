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

// Rounding could choose another expert, in a row or in one that it attends to, if routers were
// closer to that.
constexpr float kLeastMargin = 0.01f;

class PlanOracle : public ::testing::TestWithParam<PathCase> {
  protected:
    PlanOracle()
        : model_(tiny_model(GetParam().shape, "F32")),
          rig_(model_, {.capacity = kCapacity, .n_ubatch = 512, .path = GetParam().path}),
          reference_(model_, kCapacity) {
        // Both caches hold the same text to their last row; passes then overwrite a part of it.
        const auto text = decided_tokens(model_, kCapacity, 1, kLeastMargin);
        rig_.feed(text);
        reference_.feed(text);
    }

    // By how much a logit of a pass of random tokens differs at most.
    float largest_error(const RandomPass& pass, const ModulePlan& plan, unsigned seed) {
        auto tokens = random_tokens(pass.n_rows, model_.config.n_vocab, seed);
        std::vector<std::int32_t> positions(tokens.size());
        fill_positions(pass.layout, pass.first_row, positions);
        const ReferencePass reference{
            .first_row = pass.first_row,
            .positions = positions,
            .sees =
                [&](int layer, int row, int j) {
                    return naively_sees(pass.layout,
                                        {window_of(plan, layer), model_.config.layer(layer).window},
                                        pass.first_row, row, j);
                },
            .plan = &plan,
        };
        const auto expected = reference_.run_decided(tokens, reference, kLeastMargin);
        const auto rows = rig_.run(
            {.tokens = tokens, .plan = &plan, .first_row = pass.first_row, .layout = pass.layout});
        float error = 0;
        for (std::size_t row = 0; row < expected.size(); ++row) {
            error = std::max(error, max_abs_difference(rows[row], expected[row]));
        }
        return error;
    }

    LoadedModel model_;
    ForwardRig rig_;
    ReferenceForward reference_;
};

TEST_P(PlanOracle, RandomPlansInEveryLayoutAgree) {
    // For logits with a spread of about 1. The reference, like the folded path, rounds attention
    // weights to half precision; our kernel does not, and flash attention sums in half precision.
    const float bound = GetParam().path == AttentionPath::folded   ? 0.005f
                        : GetParam().path == AttentionPath::kernel ? 0.02f
                                                                   : 0.1f;
    // Routers are steep here, and weigh what experts give: they multiply the kernel's difference.
    const bool multiplies =
        model_.config.n_experts_used() > 0 && GetParam().path == AttentionPath::kernel;
    const float limit = multiplies ? 3 * bound : bound;
    std::mt19937 engine(3);
    for (const Kind kind : {Kind::causal, Kind::tree, Kind::branches, Kind::replay}) {
        for (unsigned trial = 0; trial < 12; ++trial) {
            const RandomPass pass = random_pass(engine, kind, kCapacity, trial % 3 == 0 ? 1 : 40);
            const ModulePlan plan = random_plan(engine, model_.config.n_layers);
            EXPECT_LE(largest_error(pass, plan, trial), limit)
                << "layout " << static_cast<int>(kind) << ", trial " << trial;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Paths, PlanOracle, all_path_cases());

}  // namespace
}  // namespace knap::test::plan_oracle_test

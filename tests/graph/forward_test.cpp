// What a pass guarantees besides its numbers: graph reuse, rollback, memory, cancellation.
#include "forward/forward.h"

#include <atomic>
#include <cmath>

#include <gtest/gtest.h>

#include "support/loaded_model.h"
#include "support/logits.h"
#include "support/tiny_model.h"

namespace knap::test::forward_test {
namespace {

class ForwardPass : public ::testing::Test {
  protected:
    ForwardPass()
        : model_(tiny_model("tiny-llama", "Q8_0")),
          rig_(model_, {.capacity = 512, .n_ubatch = 256}) {}

    std::vector<Token> tokens(int n, unsigned seed = 3) const {
        return random_tokens(n, model_.config.n_vocab, seed);
    }

    LoadedModel model_;
    ForwardRig rig_;
};

TEST_F(ForwardPass, AttentionDependsOnlyOnDistances) {
    const auto text = tokens(200, 8);
    const auto input = tokens(4);
    // The last of four rows after `n_context` others. The four attend to one another and to the
    // first `n_sinks` rows of the text.
    const auto last_row = [&](int n_context, int n_sinks) {
        ModulePlan plan(model_.config.n_layers);
        for (int layer = 0; layer < plan.n_layers(); ++layer) {
            plan.set(layer, Module::attention, Level::windowed(n_sinks, 0));
        }
        rig_.cache.truncate(0);
        if (n_context > 0) {
            rig_.feed(std::span(text).first(static_cast<std::size_t>(n_context)));
        }
        return rig_.run({.tokens = input, .plan = &plan, .first_row = n_context}).back();
    };
    const auto plain = last_row(0, 0);
    const auto moved = last_row(100, 0);
    EXPECT_NE(moved, plain);
    EXPECT_LT(max_abs_difference(moved, plain), 0.25f) << "the same up to rounding";
    EXPECT_GT(max_abs_difference(last_row(200, 4), last_row(4, 4)), 0.25f)
        << "the same rows, further away";
}

TEST_F(ForwardPass, TruncatedRowsLeaveNoTrace) {
    const auto prompt = tokens(30);
    const auto ending = tokens(20, 5);
    rig_.feed(prompt);
    const auto expected = rig_.feed(ending);
    const auto expected_cache = rig_.cache_bytes();
    rig_.cache.truncate(30);
    rig_.feed(tokens(100, 9));  // another text, beyond the bucket
    rig_.cache.truncate(30);
    EXPECT_EQ(rig_.feed(ending), expected);
    EXPECT_EQ(rig_.cache_bytes(), expected_cache);
}

TEST_F(ForwardPass, SteadyDecodingBuildsNoGraphAndReservesNothing) {
    rig_.feed(tokens(70));
    const auto input = tokens(50, 4);
    rig_.feed(input, std::vector<int>(2, 1));
    const ForwardStatistics before = rig_.forward.statistics();
    rig_.feed(std::span(input).subspan(2), std::vector<int>(40, 1));  // rows 72 to 111: one bucket
    const ForwardStatistics after = rig_.forward.statistics();
    EXPECT_EQ(after.graphs.built, before.graphs.built);
    EXPECT_EQ(after.graphs.reused, before.graphs.reused + 40);
    EXPECT_EQ(after.reservations, before.reservations);
    EXPECT_EQ(after.scratch_bytes, before.scratch_bytes);
}

TEST_F(ForwardPass, GraphsAreBoundedInNumberAndRebuiltWhenNeeded) {
    const auto input = tokens(200);
    const auto first = rig_.feed(std::span(input).first(3));
    for (int n = 1; n <= 100; ++n) {  // more shapes than are kept
        const std::vector<int> captures{n % (2 * model_.config.n_layers + 1)};
        rig_.forward.run(
            {.tokens = std::span(input).first(static_cast<std::size_t>(n)), .captures = captures});
    }
    EXPECT_GT(rig_.forward.statistics().graphs.evicted, 0);
    rig_.cache.truncate(0);
    EXPECT_EQ(rig_.feed(std::span(input).first(3)), first);
}

TEST_F(ForwardPass, MoreLogitRowsThanReservedAreStillCorrect) {
    const auto input = tokens(200);
    const auto rows = rig_.feed(input);  // 200 rows of logits: more than are reserved
    rig_.cache.truncate(0);
    const auto singles = rig_.feed(input, std::vector<int>(200, 1));
    EXPECT_EQ(rows, singles);
}

TEST_F(ForwardPass, ContextMayBeFilledToTheLastRow) {
    const auto input = tokens(512);
    const auto rows = rig_.feed(input, std::vector<int>{256, 255, 1});
    EXPECT_EQ(rig_.cache.committed(), rig_.cache.capacity());
    EXPECT_EQ(rows.size(), 512u);
    for (const float value : rows.back()) {
        ASSERT_TRUE(std::isfinite(value));
    }
}

TEST_F(ForwardPass, CancelledPassIsReportedAndTheNextOneIsCorrect) {
    const auto input = tokens(40);
    const auto expected = rig_.feed(input);
    rig_.cache.truncate(0);
    std::atomic<int> polls{0};
    model_.backend.set_abort([&] { return ++polls > 20; });
    const std::vector<int> rows{39};
    EXPECT_FALSE(rig_.forward.run({.tokens = input, .logit_rows = rows}).is_complete);
    model_.backend.set_abort({});
    EXPECT_EQ(rig_.feed(input), expected);
}

TEST(ForwardCaches, EveryCacheTypeAndPathAgreesWithinTheBound) {
    LoadedModel model(tiny_model("small-llama", "Q4_1"));
    const auto input = random_tokens(90, model.config.n_vocab, 2);
    ForwardRig f16(model, {.path = AttentionPath::folded});
    const auto expected = f16.feed(input).back();
    const std::vector<std::pair<ForwardOptions, float>> cases{
        {{.path = AttentionPath::kernel}, 0.25f},
        {{.type_k = CacheType::q8_0, .type_v = CacheType::q8_0, .path = AttentionPath::kernel},
         0.5f},
        {{.type_k = CacheType::f32, .type_v = CacheType::f32}, 0.25f},
        {{.type_k = CacheType::q8_0}, 0.5f},
        {{.path = AttentionPath::flash}, 0.25f},
        {{.type_k = CacheType::f32, .type_v = CacheType::f32, .path = AttentionPath::flash}, 0.25f},
        {{.type_k = CacheType::q8_0, .type_v = CacheType::q8_0, .path = AttentionPath::flash},
         0.5f},
    };
    for (std::size_t i = 0; i < cases.size(); ++i) {
        ForwardRig rig(model, cases[i].first);
        EXPECT_LT(max_abs_difference(rig.feed(input).back(), expected), cases[i].second)
            << "case " << i;
    }
}

}  // namespace
}  // namespace knap::test::forward_test

// What a pass promises besides its numbers: plans, captures, resuming, reuse, rollback, cancelling.
#include "graph/forward.h"

#include <atomic>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "support/loaded_model.h"
#include "support/logits.h"
#include "support/tiny_model.h"

namespace knap::test {
namespace {

class ForwardPass : public ::testing::Test {
  protected:
    ForwardPass()
        : model_(tiny_model("tiny-llama", "Q8_0")),
          rig_(model_, {.capacity = 512, .n_ubatch = 256}) {}

    std::vector<Token> tokens(int n, unsigned seed = 3) const {
        return random_tokens(n, model_.config.n_vocab, seed);
    }
    int n_embd() const { return model_.config.n_embd; }
    int n_layers() const { return model_.config.n_layers; }

    LoadedModel model_;
    ForwardRig rig_;
};

std::vector<float> copy(std::span<const float> values) {
    return {values.begin(), values.end()};
}

TEST_F(ForwardPass, FullPlanEqualsNoPlan) {
    const auto input = tokens(5);
    const std::vector<int> rows{4};
    const auto plain = copy(rig_.forward.run({.tokens = input, .logit_rows = rows}).logits);
    const ModulePlan full(n_layers());
    EXPECT_EQ(copy(rig_.forward.run({.tokens = input, .plan = &full, .logit_rows = rows}).logits),
              plain);
}

TEST_F(ForwardPass, SkippedModuleLeavesTheStreamAlone) {
    const auto input = tokens(6);
    ModulePlan plan(n_layers());
    plan.set(1, Module::attention, Level::skip);
    plan.set(2, Module::mlp, Level::skip);
    const std::vector<int> captures{0, 2, 3, 4, 5, 6, 8};
    const ForwardResult result =
        rig_.forward.run({.tokens = input, .plan = &plan, .captures = captures});
    ASSERT_EQ(result.captures.size(), captures.size());
    EXPECT_EQ(copy(result.captures[1]), copy(result.captures[2])) << "layer 1 attention is skipped";
    EXPECT_NE(copy(result.captures[2]), copy(result.captures[3])) << "layer 1 mlp runs";
    EXPECT_NE(copy(result.captures[3]), copy(result.captures[4])) << "layer 2 attention runs";
    EXPECT_EQ(copy(result.captures[4]), copy(result.captures[5])) << "layer 2 mlp is skipped";
    EXPECT_EQ(result.captures[0].size(), static_cast<std::size_t>(n_embd() * 6));
}

TEST_F(ForwardPass, CapturesDoNotChangeLogits) {
    const auto input = tokens(7);
    const std::vector<int> rows{6};
    const auto plain = copy(rig_.forward.run({.tokens = input, .logit_rows = rows}).logits);
    std::vector<int> captures(static_cast<std::size_t>(2 * n_layers() + 1));
    std::iota(captures.begin(), captures.end(), 0);
    const ForwardResult result =
        rig_.forward.run({.tokens = input, .captures = captures, .logit_rows = rows});
    EXPECT_EQ(copy(result.logits), plain);
    EXPECT_EQ(result.captures.size(), captures.size());
}

TEST_F(ForwardPass, ResumingFromCapturedRowsEqualsOnePass) {
    const auto input = tokens(9);
    const std::vector<int> rows{2, 8};
    const auto whole = copy(rig_.forward.run({.tokens = input, .logit_rows = rows}).logits);
    const std::vector<int> captures{2 * 2};
    const auto hidden = copy(
        rig_.forward.run({.tokens = input, .exit_layer = 2, .captures = captures}).captures[0]);
    const ForwardResult resumed =
        rig_.forward.run({.hidden = hidden, .entry_layer = 2, .logit_rows = rows});
    EXPECT_EQ(copy(resumed.logits), whole);
}

TEST_F(ForwardPass, ChosenLogitRowsEqualThoseOfAllRows) {
    const auto input = tokens(12);
    const auto all = rig_.feed(input);
    rig_.cache.truncate(0);
    const std::vector<int> rows{0, 5, 11};
    const auto chosen = copy(rig_.forward.run({.tokens = input, .logit_rows = rows}).logits);
    const auto n_vocab = static_cast<std::size_t>(model_.config.n_vocab);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto row = std::span(chosen).subspan(i * n_vocab, n_vocab);
        EXPECT_EQ(copy(row), all[static_cast<std::size_t>(rows[i])]);
    }
}

TEST_F(ForwardPass, PositionsShiftTheRotationAlone) {
    const auto input = tokens(4);
    const std::vector<int> rows{3};
    const auto plain = copy(rig_.forward.run({.tokens = input, .logit_rows = rows}).logits);
    const std::vector<std::int32_t> shifted{100, 101, 102, 103};
    const auto moved =
        copy(rig_.forward.run({.tokens = input, .positions = shifted, .logit_rows = rows}).logits);
    EXPECT_NE(moved, plain);
    EXPECT_LT(max_abs_difference(moved, plain), 0.25f)
        << "attention depends on distances alone, up to rounding";
    const std::vector<std::int32_t> spread{0, 50, 90, 200};
    const auto other =
        copy(rig_.forward.run({.tokens = input, .positions = spread, .logit_rows = rows}).logits);
    EXPECT_GT(max_abs_difference(other, plain), 0.25f);
}

TEST_F(ForwardPass, AfterTruncateGoingOnEqualsNeverHavingBeenThere) {
    const auto prompt = tokens(30);
    const auto ending = tokens(20, 5);
    rig_.feed(prompt);
    const auto expected = rig_.feed(ending);
    const auto expected_cache = rig_.cache_bytes();
    rig_.cache.truncate(30);
    rig_.feed(tokens(100, 9));  // somewhere else, beyond the bucket
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
    for (int n = 1; n <= 60; ++n) {  // more shapes than are kept
        rig_.cache.truncate(0);
        rig_.feed(std::span(input).first(static_cast<std::size_t>(n)));
    }
    EXPECT_GT(rig_.forward.statistics().graphs.evicted, 0);
    rig_.cache.truncate(0);
    EXPECT_EQ(rig_.feed(std::span(input).first(3)), first);
}

TEST_F(ForwardPass, MoreLogitRowsThanReservedStillComeOutRight) {
    const auto input = tokens(200);
    const auto rows = rig_.feed(input);  // 200 rows of logits: more than was reserved for
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

TEST_F(ForwardPass, CancelledPassSaysSoAndTheNextOneIsRight) {
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
}  // namespace knap::test

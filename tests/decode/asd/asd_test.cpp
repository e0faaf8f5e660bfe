#include "decode/asd/asd.h"

#include <algorithm>
#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "forward/plan_text.h"
#include "model/layer_classes.h"
#include "search/cosine.h"
#include "support/fake_round.h"
#include "support/search_rig.h"

namespace knap::test::asd_test {
namespace {

constexpr int kLayers = 6;
constexpr int kRows = 16;

// A text in the cache, with the token after it pending.
class AsdOnText : public ::testing::Test {
  protected:
    AsdOnText() : rig_({.model = tiny_model_of_layers(kLayers)}), history_(rig_.text) {
        history_.push_back(7);
        profile_.layer_classes = classify_layers(*rig_.model.weights);
    }

    StrategyParts parts() {
        return {.config = rig_.model.config,
                .forward = rig_.rig.forward,
                .cache = rig_.rig.cache,
                .profile = profile_,
                .max_rows = 64};
    }

    AsdStrategy strategy(const AsdOptions& options) {
        AsdStrategy made(options, parts());
        made.begin({.prompt = rig_.text});
        return made;
    }

    Proposal propose(AsdStrategy& asd, int n_room = kMaxDraft) {
        return asd.propose({.history = history_, .n_room = n_room});
    }

    // c_l over the last kRows tokens of the text, from one plain pass over the whole text.
    std::vector<double> cosines() {
        std::vector<int> captures(2 * kLayers + 1);
        for (int i = 0; i <= 2 * kLayers; ++i) {
            captures[static_cast<std::size_t>(i)] = i;
        }
        Sequence& cache = rig_.rig.cache;
        const int n_text = cache.committed();
        cache.truncate(0);
        const ForwardResult result =
            rig_.rig.forward.run({.tokens = rig_.text, .captures = captures});
        cache.commit(n_text);
        std::vector<double> means;
        const auto n_last =
            static_cast<std::size_t>(kRows) * static_cast<std::size_t>(rig_.model.config.n_embd);
        for (std::size_t layer = 0; layer < kLayers; ++layer) {
            means.push_back(sum_of_cosines(result.captures[2 * layer].last(n_last),
                                           result.captures[2 * layer + 1].last(n_last), kRows) /
                            kRows);
        }
        return means;
    }

    // A threshold that half of the inner layers' cosines exceed.
    static float middle(std::vector<double> cosines) {
        std::sort(cosines.begin() + 1, cosines.end() - 1);
        return static_cast<float>((cosines[kLayers / 2 - 1] + cosines[kLayers / 2]) / 2);
    }

    SearchRig rig_;
    std::vector<Token> history_;
    CostProfile profile_;
};

TEST_F(AsdOnText, SkipsTheAttentionsThatChangeTheLastRowsLeast) {
    const std::vector<double> expected = cosines();
    AsdStrategy asd = strategy({.rule = {.least_cosine = middle(expected)}, .n_rows = kRows});
    const Proposal proposal = propose(asd);
    const ModulePlan& plan = *std::get<DraftWithPlan>(proposal.draft).plan;
    int n_left_out = 0;
    for (int layer = 0; layer < kLayers; ++layer) {
        const bool is_inner = layer > 0 && layer < kLayers - 1;
        const bool is_high = expected[static_cast<std::size_t>(layer)] > middle(expected);
        EXPECT_EQ(plan.runs(layer, Module::attention), !(is_inner && is_high)) << layer;
        EXPECT_TRUE(plan.runs(layer, Module::mlp)) << layer;
        n_left_out += plan.runs(layer, Module::attention) ? 0 : 1;
    }
    EXPECT_EQ(n_left_out, 2);
    ASSERT_EQ(asd.decisions().size(), 1u);
    EXPECT_EQ(asd.decisions()[0].plan, to_string(plan));
    EXPECT_EQ(asd.decisions()[0].token, 1);
    EXPECT_THAT(asd.decisions()[0].reason, ::testing::StartsWith("2 of 6 attentions"));
}

TEST_F(AsdOnText, ChoosesOncePerRequestUnlessAskedToRefresh) {
    AsdStrategy once = strategy({.rule = {.least_cosine = -1}});
    AsdStrategy often = strategy({.rule = {.least_cosine = -1}, .refresh_rounds = 3});
    for (int round = 0; round < 6; ++round) {
        propose(once);
        propose(often);
    }
    EXPECT_EQ(once.decisions().size(), 1u);
    EXPECT_EQ(often.decisions().size(), 2u) << "before rounds 0 and 3";
    once.begin({.prompt = rig_.text});
    EXPECT_TRUE(once.decisions().empty());
    propose(once);
    EXPECT_EQ(once.decisions().size(), 1u);
}

TEST_F(AsdOnText, ThresholdAdaptsLikeDraftVerifyAndOutlivesARequest) {
    AsdStrategy asd = strategy({.threshold = {.cap = 3}, .rule = {.least_cosine = -1}});
    EXPECT_EQ(std::get<DraftWithPlan>(propose(asd).draft).stop.n_max, 3);
    const FakeRound round({.row = 10, .n_drafted = 2, .n_accepted = 1});
    asd.observe(round.outcome());
    asd.begin({.prompt = rig_.text});
    const Proposal proposal = propose(asd);
    EXPECT_NEAR(std::get<DraftWithPlan>(proposal.draft).stop.exit_confidence, 0.601, 1e-6);
}

TEST_F(AsdOnText, ForcedDraftsTeachNothing) {
    AsdStrategy asd = strategy({.rule = {.least_cosine = -1}});
    const FakeRound forced({.row = 10, .n_drafted = 2, .n_accepted = 1, .is_forced = true});
    asd.observe(forced.outcome());
    const Proposal proposal = propose(asd);
    EXPECT_EQ(std::get<DraftWithPlan>(proposal.draft).stop.exit_confidence, 0.6f);
}

TEST_F(AsdOnText, DraftsNothingWhenNoAttentionQualifies) {
    AsdStrategy asd = strategy({.rule = {.least_cosine = 1}});
    EXPECT_TRUE(std::holds_alternative<PlainStep>(propose(asd).draft));
    ASSERT_EQ(asd.decisions().size(), 1u);
    EXPECT_EQ(asd.decisions()[0].plan, "");
}

TEST_F(AsdOnText, RoundWithoutRoomIsPlainAndMakesNoChoice) {
    AsdStrategy asd = strategy({.rule = {.least_cosine = -1}});
    EXPECT_TRUE(std::holds_alternative<PlainStep>(propose(asd, /*n_room=*/0).draft));
    EXPECT_TRUE(asd.decisions().empty());
    EXPECT_TRUE(std::holds_alternative<DraftWithPlan>(propose(asd).draft));
}

TEST(AsdOptions, EveryKeySetsItsField) {
    const AsdOptions read = read_asd_options(
        {.draft_max = 9,
         .settings = parse_settings("theta=0.5,max-run=2,max-total=5,rows=8,refresh=3,target=0.25,"
                                    "eps=0.125,exit-confidence=0.75,beta1=0.375,beta2=0.625")},
        /*max_rows=*/64);
    EXPECT_EQ(read.rule.least_cosine, 0.5f);
    EXPECT_EQ(read.rule.max_run, 2);
    EXPECT_EQ(read.rule.max_total, 5);
    EXPECT_EQ(read.n_rows, 8);
    EXPECT_EQ(read.refresh_rounds, 3);
    EXPECT_EQ(read.threshold.cap, 9);
    EXPECT_EQ(read.threshold.target, 0.25f);
    EXPECT_EQ(read.threshold.step, 0.125f);
    EXPECT_EQ(read.threshold.start, 0.75f);
    EXPECT_EQ(read.threshold.acceptance_memory, 0.375f);
    EXPECT_EQ(read.threshold.threshold_memory, 0.625f);
}

TEST(AsdOptions, ValuesOutOfRangeAreRefused) {
    for (const char* text : {"theta=1.5", "rows=0", "refresh=-1", "max-run=x", "max-total=-1"}) {
        EXPECT_THROW(read_asd_options({.settings = parse_settings(text)}, /*max_rows=*/64), Error)
            << text;
    }
}

}  // namespace
}  // namespace knap::test::asd_test

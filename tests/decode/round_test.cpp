// One round: what it emits, what it commits and what it leaves unchanged.
#include "decode/round.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/round_rig.h"
#include "support/tiny_model.h"

namespace knap::test::round_test {
namespace {

using ::testing::ElementsAre;

class Rounds : public ::testing::Test {
  protected:
    Rounds()
        : model_(tiny_model("tiny-llama", "Q8_0")),
          rig_(model_),
          sampler_({}, model_.config.n_vocab, 1024),
          round_(rig_.rig.forward,
                 rig_.rig.cache,
                 sampler_,
                 {.acceptance = {.measures_gaps = true},
                  .is_end_of_text = [](Token) { return false; },
                  .max_rows = 64}) {
        case_ = {.prompt = random_tokens(70, model_.config.n_vocab, 5), .n_tokens = 12};
        plain_ = rig_.plain(case_);
        rewind();
    }

    // Goes back to the prompt, with the first generated token pending.
    void rewind() { rig_.rig.cache.truncate(static_cast<int>(case_.prompt.size())); }

    // The i-th token after the pending one in plain decoding, and a different token.
    Token right(int i) const { return plain_.tokens[static_cast<std::size_t>(i)]; }
    Token wrong(int i) const { return (right(i) + 1) % model_.config.n_vocab; }

    std::optional<RoundOutcome> run(const DraftTree& tree) {
        return round_.run(right(0), {.draft = DraftTokens{&tree}});
    }
    int committed() const { return rig_.rig.cache.committed(); }

    LoadedModel model_;
    RoundRig rig_;
    Sampler sampler_;
    Round round_;
    DecodeCase case_;
    Decoded plain_;
};

TEST_F(Rounds, WithoutADraftIsAPlainStep) {
    const auto outcome = round_.run(right(0), {});
    EXPECT_TRUE(outcome->tree.is_empty());
    EXPECT_THAT(outcome->emitted, ElementsAre(right(1)));
    EXPECT_EQ(committed(), 71);
}

// More threads than cores: sooner or later the system takes one away from the round.
TEST_F(Rounds, ToldFromDisturbedOnes) {
    std::atomic<bool> is_over = false;
    std::vector<std::jthread> others;
    for (unsigned i = 0; i <= std::max(1u, std::thread::hardware_concurrency()); ++i) {
        others.emplace_back([&] {
            while (!is_over) {
            }
        });
    }
    bool was_disturbed = false;
    for (int i = 0; i < 100000 && !was_disturbed; ++i) {
        rewind();
        was_disturbed = round_.run(right(0), {})->was_disturbed;
    }
    is_over = true;
    EXPECT_TRUE(was_disturbed);
}

TEST_F(Rounds, AcceptsTheCorrectStartOfAChainAndCorrectsTheNextToken) {
    DraftTree tree;
    tree.add(right(1), kPendingNode);
    tree.add(right(2), 0);
    tree.add(wrong(3), 1);
    tree.add(right(4), 2);
    const auto outcome = run(tree);
    EXPECT_THAT(outcome->path, ElementsAre(0, 1));
    EXPECT_THAT(outcome->emitted, ElementsAre(right(1), right(2), right(3)));
    EXPECT_EQ(outcome->gaps.size(), 3u);
    EXPECT_EQ(committed(), 73) << "the pending token and two drafts";
}

TEST_F(Rounds, WholeChainEarnsABonusToken) {
    DraftTree tree;
    tree.add(right(1), kPendingNode);
    tree.add(right(2), 0);
    EXPECT_THAT(run(tree)->emitted, ElementsAre(right(1), right(2), right(3)));
    EXPECT_EQ(committed(), 73);
}

TEST_F(Rounds, TreePathIsGatheredToFollowTheContext) {
    // The correct path is 2 - 4 - 5; every other node is wrong.
    DraftTree tree;
    tree.add(wrong(1), kPendingNode);
    tree.add(wrong(2), 0);
    tree.add(right(1), kPendingNode);
    tree.add(wrong(2), 2);
    tree.add(right(2), 2);
    tree.add(right(3), 4);
    tree.add(wrong(3), 4);
    const auto outcome = run(tree);
    EXPECT_THAT(outcome->path, ElementsAre(2, 4, 5));
    EXPECT_THAT(outcome->emitted, ElementsAre(right(1), right(2), right(3), right(4)));
    EXPECT_EQ(committed(), 74);
    // Plain decoding continues from the gathered rows as from its own.
    const std::vector<Token> rest{right(4), right(5), right(6)};
    const auto logits = rig_.rig.feed(rest);
    Token next = 0;
    for (std::size_t i = 0; i < rest.size(); ++i) {
        next = sampler_.sample(logits[i], 0);
        EXPECT_EQ(next, right(static_cast<int>(i) + 5));
    }
}

TEST_F(Rounds, NothingOfARejectedDraftIsLeft) {
    DraftTree tree;
    tree.add(wrong(1), kPendingNode);
    tree.add(right(2), 0);
    run(tree);
    EXPECT_EQ(committed(), 71);
    const std::vector<Token> rest{right(1), right(2), right(3)};
    rig_.rig.feed(rest, std::vector<int>{1, 1, 1});
    std::vector<Token> text = case_.prompt;
    text.insert(text.end(), plain_.tokens.begin(), plain_.tokens.begin() + 4);
    ForwardRig fresh(model_);
    fresh.feed(text);
    EXPECT_EQ(rig_.rig.cache_bytes(), fresh.cache_bytes());
}

TEST_F(Rounds, CapturesEqualThoseOfTheWholeModel) {
    DraftTree tree;
    tree.add(right(1), kPendingNode);
    tree.add(wrong(2), 0);
    const std::vector<int> captures{0, 3, 2 * model_.config.n_layers};
    const auto n_embd = static_cast<std::size_t>(model_.config.n_embd);
    const auto outcome = round_.run(right(0), {.draft = DraftTokens{&tree}, .captures = captures});
    ASSERT_EQ(outcome->captures.size(), 3u);
    std::vector<std::vector<float>> seen;
    for (const auto& capture : outcome->captures) {
        EXPECT_EQ(capture.size(), 3 * n_embd);
        seen.emplace_back(capture.begin(), capture.end());
    }
    rewind();
    const std::vector<Token> rows{right(0), right(1), wrong(2)};
    const ForwardResult direct =
        rig_.rig.forward.run({.tokens = rows, .first_row = 70, .captures = captures});
    for (std::size_t i = 0; i < seen.size(); ++i) {
        EXPECT_TRUE(std::equal(seen[i].begin(), seen[i].end(), direct.captures[i].begin()));
    }
}

TEST_F(Rounds, CancelledRoundCommitsNothing) {
    const ModulePlan plan(model_.config.n_layers);
    model_.backend.set_abort([] { return true; });
    const DraftWithPlan how{.plan = &plan, .stop = {.n_max = 4}};
    EXPECT_FALSE(round_.run(right(0), {.draft = how}).has_value());
    EXPECT_FALSE(round_.run(right(0), {}).has_value());
    model_.backend.set_abort({});
    EXPECT_EQ(committed(), 70);
    EXPECT_THAT(round_.run(right(0), {})->emitted, ElementsAre(right(1)));
}

TEST_F(Rounds, DraftsStopAtTheEndOfTheText) {
    const ModulePlan plan(model_.config.n_layers);
    Round round(rig_.rig.forward, rig_.rig.cache, sampler_,
                {.is_end_of_text = [&](Token token) { return token == right(3); }, .max_rows = 64});
    const DraftWithPlan how{.plan = &plan, .stop = {.n_max = 9}};
    EXPECT_EQ(round.run(right(0), {.draft = how})->tree.n_nodes(), 3);
}

// Layers that the plan runs in full are not computed again: the streams that drafting kept
// determine the result.
TEST(Verifier, ResumesFromReusableRows) {
    LoadedModel model(tiny_model("tiny-llama", "Q8_0"));
    ForwardRig rig(model);
    rig.feed(random_tokens(50, model.config.n_vocab, 6));
    Verifier verifier(rig.forward, rig.cache);
    DraftTree tree;
    tree.add(11, kPendingNode);
    tree.add(12, 0);
    tree.add(13, 0);

    const std::vector<int> wanted{0, 3, 4, 7, 8};
    const ForwardResult whole = verifier.run(10, tree, {}, wanted);
    const std::vector<float> expected(whole.logits.begin(), whole.logits.end());
    std::vector<std::vector<float>> expected_streams;
    for (const std::span<const float> stream : whole.captures) {
        expected_streams.emplace_back(stream.begin(), stream.end());
    }

    const std::vector<Token> drafted{10, 11};
    const std::vector<int> captures{0, 3, 4};
    const ForwardResult lower = rig.forward.run(
        {.tokens = drafted, .first_row = 50, .exit_layer = 2, .captures = captures});
    std::vector<std::vector<float>> streams;
    for (const std::span<const float> stream : lower.captures) {
        streams.emplace_back(stream.begin(), stream.end());
    }
    const ReusableRows reusable{
        .n_layers = 2, .n_rows = 2, .captures = captures, .streams = streams};
    const ForwardResult resumed = verifier.run(10, tree, reusable, wanted);
    EXPECT_TRUE(std::ranges::equal(expected, resumed.logits));
    ASSERT_EQ(resumed.captures.size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        EXPECT_TRUE(std::ranges::equal(expected_streams[i], resumed.captures[i])) << wanted[i];
    }

    streams.back().front() += 1.0f;
    const ForwardResult changed = verifier.run(10, tree, reusable, wanted);
    EXPECT_FALSE(std::ranges::equal(expected, changed.logits));
}

}  // namespace
}  // namespace knap::test::round_test

// A guess does not change a draft: its tokens, siblings, distributions, confidences and reusable
// rows are the same without it. A guess only saves passes.
#include "decode/drafter.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include <gtest/gtest.h>

#include "forward/plan_text.h"
#include "support/loaded_model.h"
#include "support/tiny_model.h"

namespace knap::test::drafter_test {
namespace {

using Tokens = std::vector<Token>;

struct Draft {
    Tokens tokens;
    std::vector<int> parents;
    std::vector<Distribution> sources;  // of each node's children; the pending token's come first
    std::vector<float> confidences;
    int n_reusable_layers = 0;
    int n_reusable_rows = 0;
    std::vector<int> captures;
    std::vector<std::vector<float>> streams;
    int n_guessed = 0;
    std::int64_t n_passes = 0;
};

void expect_same_draft(const Draft& found, const Draft& expected) {
    EXPECT_EQ(found.tokens, expected.tokens);
    EXPECT_EQ(found.parents, expected.parents);
    ASSERT_EQ(found.sources.size(), expected.sources.size());
    for (std::size_t i = 0; i < found.sources.size(); ++i) {
        EXPECT_EQ(found.sources[i].tokens, expected.sources[i].tokens);
        EXPECT_EQ(found.sources[i].probabilities, expected.sources[i].probabilities);
    }
    EXPECT_EQ(found.confidences, expected.confidences);
    EXPECT_EQ(found.n_reusable_layers, expected.n_reusable_layers);
    EXPECT_EQ(found.n_reusable_rows, expected.n_reusable_rows);
    EXPECT_EQ(found.captures, expected.captures);
    EXPECT_EQ(found.streams, expected.streams);
}

class GuessedDrafts : public ::testing::Test {
  protected:
    static constexpr int kContext = 70;
    static constexpr Token kPending = 11;

    GuessedDrafts() : model_(tiny_model("tiny-llama", "Q8_0")), rig_(model_) {
        prompt_ = random_tokens(kContext, model_.config.n_vocab, 8);
        rig_.feed(prompt_);
    }

    // Drafts with a new drafter, because drafters remember which noise they have used.
    std::optional<Draft> draft(DraftWithPlan how, const Tokens& guess, int max_nodes = 64) {
        how.guess = guess;
        Sampler sampler(sampling_, model_.config.n_vocab, 1024);
        for (const Token token : prompt_) {
            sampler.accept(token);
        }
        sampler.accept(kPending);
        Drafter drafter(rig_.forward, rig_.cache, sampler, rule_, is_end_of_text_);
        DraftTree tree;
        const std::int64_t n_before = n_passes();
        if (!drafter.draft(kPending, how, captures_, max_nodes, tree)) {
            return std::nullopt;
        }
        const ReusableRows reusable = drafter.reusable_rows();
        Draft out{
            .tokens = {tree.tokens().begin(), tree.tokens().end()},
            .confidences = {drafter.confidences().begin(), drafter.confidences().end()},
            .n_reusable_layers = reusable.n_layers,
            .n_reusable_rows = reusable.n_rows,
            .captures = {reusable.captures.begin(), reusable.captures.end()},
            .streams = {reusable.streams.begin(), reusable.streams.end()},
            .n_guessed = drafter.n_guessed(),
            .n_passes = n_passes() - n_before,
        };
        for (int node = kPendingNode; node < tree.n_nodes(); ++node) {
            const Distribution* source = tree.drawn_from(node);
            out.sources.push_back(source != nullptr ? *source : Distribution{});
            if (node != kPendingNode) {
                out.parents.push_back(tree.parent(node));
            }
        }
        return out;
    }

    std::int64_t n_passes() const {
        const GraphStatistics& graphs = rig_.forward.statistics().graphs;
        return graphs.built + graphs.reused;
    }

    ModulePlan plan(const char* text) const { return parse_plan(text, model_.config.n_layers); }
    Token other_than(Token token) const { return (token + 1) % model_.config.n_vocab; }

    // Guesses of every kind for a draft whose first choices are `chain`.
    std::vector<Tokens> guesses(const Tokens& chain) const {
        std::vector<Tokens> all{chain, Tokens(chain.begin(), chain.end() - 2), {chain.front()}};
        for (std::size_t i = 0; i < chain.size(); ++i) {
            all.push_back(chain);
            all.back()[i] = other_than(chain[i]);
        }
        all.push_back(chain);
        all.back().insert(all.back().end(), 5, chain.front());
        all.push_back(random_tokens(4, model_.config.n_vocab, 3));
        return all;
    }

    // Expects every guess to give the same draft as no guess. Returns the draft without a guess.
    Draft expect_guesses_change_nothing(const DraftWithPlan& how, int max_nodes = 64) {
        const Draft plain = *draft(how, {}, max_nodes);
        EXPECT_EQ(plain.n_guessed, 0);
        const int n_chain = std::min(how.stop.n_max, max_nodes);
        const Tokens chain(plain.tokens.begin(), plain.tokens.begin() + n_chain);
        for (const Tokens& guess : guesses(chain)) {
            SCOPED_TRACE(::testing::PrintToString(guess));
            const Draft guessed = *draft(how, guess, max_nodes);
            expect_same_draft(guessed, plain);
            const auto n_common = std::ranges::mismatch(guess, chain).in1 - guess.begin();
            EXPECT_EQ(guessed.n_guessed, n_common);
            // The first pass has a row for the pending token and one for each correct guess, but
            // none for the draft's last token, whose logits are not needed.
            const auto n_spared = std::min<std::ptrdiff_t>(n_common, n_chain - 1);
            EXPECT_EQ(guessed.n_passes, plain.n_passes - n_spared);
        }
        return plain;
    }

    LoadedModel model_;
    ForwardRig rig_;
    Tokens prompt_;
    std::vector<int> captures_;
    SamplingOptions sampling_{};
    AcceptanceRule rule_ = AcceptanceRule::shared_noise;
    std::function<bool(Token)> is_end_of_text_ = [](Token) { return false; };
};

TEST_F(GuessedDrafts, AreTheSameAsWithoutTheGuess) {
    for (const char* text : {"full", "a=w4+20", "exit=0", "m1=skip", "a2=skip,a3=w4+20", "exit=2",
                             "m1=skip,head=reduced"}) {
        SCOPED_TRACE(text);
        const ModulePlan drafting = plan(text);
        expect_guesses_change_nothing({.plan = &drafting, .stop = {.n_max = 7}});
    }
}

TEST_F(GuessedDrafts, KeepTheirDistributionsUnderEveryRule) {
    sampling_ = {.temperature = 0.9f, .top_k = 20, .repeat_penalty = 1.2f, .seed = 5};
    const ModulePlan drafting = plan("m1=skip");
    for (const AcceptanceRule rule :
         {AcceptanceRule::shared_noise, AcceptanceRule::ratio, AcceptanceRule::equality}) {
        rule_ = rule;
        const Draft plain =
            expect_guesses_change_nothing({.plan = &drafting, .stop = {.n_max = 6}});
        EXPECT_EQ(plain.sources.front().tokens.empty(), rule != AcceptanceRule::ratio);
    }
}

TEST_F(GuessedDrafts, HaveTheSameSiblings) {
    const ModulePlan drafting = plan("m1=skip");
    expect_guesses_change_nothing({.plan = &drafting, .stop = {.n_max = 5}, .width = 3});
    expect_guesses_change_nothing({.plan = &drafting, .stop = {.n_max = 5}, .width = 3}, 8);
}

TEST_F(GuessedDrafts, LeaveTheSameReusableRows) {
    const ModulePlan drafting = plan("m2=skip");
    const Draft plain = expect_guesses_change_nothing({.plan = &drafting, .stop = {.n_max = 5}});
    EXPECT_EQ(plain.n_reusable_layers, 2);
    EXPECT_EQ(plain.n_reusable_rows, 5) << "the pending token and four drafts";
}

// Only those from inside the reusable layers: verification computes the others.
TEST_F(GuessedDrafts, LeaveTheStreamsThatTheRoundRequests) {
    captures_ = {0, 1, 4, 5, 8};
    const ModulePlan drafting = plan("m2=skip");
    const Draft plain = expect_guesses_change_nothing({.plan = &drafting, .stop = {.n_max = 5}});
    EXPECT_EQ(plain.captures, (std::vector<int>{0, 1, 4}));
    ASSERT_EQ(plain.streams.size(), 3u);
    const Tokens rows{kPending, plain.tokens[0], plain.tokens[1], plain.tokens[2], plain.tokens[3]};
    const ForwardResult direct =
        rig_.forward.run({.tokens = rows, .first_row = kContext, .captures = plain.captures});
    for (std::size_t i = 0; i < plain.streams.size(); ++i) {
        EXPECT_TRUE(std::ranges::equal(plain.streams[i], direct.captures[i])) << i;
    }

    const ModulePlan inexact = plan("a0=skip");
    EXPECT_TRUE(draft({.plan = &inexact, .stop = {.n_max = 5}}, {})->streams.empty());
}

// A head whose choice depends on the first number of the stream.
class FakeHead final : public ExitHead {
  public:
    explicit FakeHead(const ModelConfig& config) : config_(config) {}

    std::span<const float> logits(std::span<const float> hidden, int first_row) override {
        first_rows.push_back(first_row);
        const auto n_embd = static_cast<std::size_t>(config_.n_embd);
        const auto n_vocab = static_cast<std::size_t>(config_.n_vocab);
        logits_.assign(hidden.size() / n_embd * n_vocab, 0.0f);
        for (std::size_t row = 0; row < hidden.size() / n_embd; ++row) {
            logits_[row * n_vocab + static_cast<std::size_t>(choice(hidden[row * n_embd]))] = 9;
        }
        return logits_;
    }

    static Token choice(float number) { return static_cast<Token>(std::abs(number) * 1e4f) % 200; }

    std::vector<int> first_rows;

  private:
    const ModelConfig& config_;
    std::vector<float> logits_;
};

TEST_F(GuessedDrafts, TakeTheirTokensFromACustomHead) {
    FakeHead head(model_.config);
    const ModulePlan drafting = plan("exit=2");
    const Draft plain =
        expect_guesses_change_nothing({.plan = &drafting, .stop = {.n_max = 4}, .head = &head});
    head.first_rows.clear();
    draft({.plan = &drafting, .stop = {.n_max = 4}, .head = &head}, {});
    EXPECT_EQ(head.first_rows, (std::vector<int>{70, 71, 72, 73}));
    ASSERT_EQ(plain.streams.size(), 1u);
    for (std::size_t i = 0; i < plain.tokens.size(); ++i) {
        const std::size_t n_embd = plain.streams[0].size() / 4;
        EXPECT_EQ(plain.tokens[i], FakeHead::choice(plain.streams[0][i * n_embd]));
    }
}

TEST_F(GuessedDrafts, HaveWidthsThatFollowTheirConfidence) {
    const ModulePlan drafting = plan("m1=skip");
    DraftWithPlan how{.plan = &drafting, .stop = {.n_max = 6, .exit_confidence = 1e-9f}};
    const std::vector<float> confidences = draft(how, {})->confidences;
    std::vector<float> sorted = confidences;
    std::ranges::sort(sorted);
    ASSERT_LT(sorted[1], sorted[4]);
    // A confidence equal to a step's `above` does not exceed it.
    const std::vector<WidthStep> steps{{.above = sorted[4], .width = 1},
                                       {.above = sorted[1], .width = 2}};
    how.width = 4;
    how.width_steps = steps;
    const Draft wide = expect_guesses_change_nothing(how);
    for (int node = kPendingNode; node < 5; ++node) {
        const float confidence = confidences[static_cast<std::size_t>(node + 1)];
        const int expected = confidence > sorted[4] ? 1 : confidence > sorted[1] ? 2 : 4;
        EXPECT_EQ(std::ranges::count(wide.parents, node), expected) << node;
    }
    how.stop.exit_confidence = 0;
    EXPECT_EQ(draft(how, {})->parents, wide.parents) << "no stop rule needs the confidence";
}

TEST_F(GuessedDrafts, StayWithinTheRoom) {
    const ModulePlan drafting = plan("m1=skip");
    expect_guesses_change_nothing({.plan = &drafting, .stop = {.n_max = 9}}, 4);
    const Draft plain = *draft({.plan = &drafting, .stop = {.n_max = 9}}, {});
    const Draft one = *draft({.plan = &drafting, .stop = {.n_max = 1}}, plain.tokens);
    EXPECT_EQ(one.tokens, Tokens{plain.tokens.front()});
    EXPECT_EQ(one.n_guessed, 1);
    EXPECT_EQ(one.n_passes, 1);
    const Draft none = *draft({.plan = &drafting}, plain.tokens);
    EXPECT_TRUE(none.tokens.empty());
    EXPECT_EQ(none.n_passes, 0);
}

TEST_F(GuessedDrafts, StopWhereTheStopRuleSays) {
    const ModulePlan drafting = plan("m1=skip");
    std::set<std::size_t> lengths;
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        sampling_ = {.temperature = 1.0f, .top_k = 0, .seed = seed};  // some tokens are unlikely
        DraftWithPlan how{.plan = &drafting, .stop = {.n_max = 8, .exit_confidence = 1e-9f}};
        const Draft whole = *draft(how, {});
        ASSERT_EQ(whole.confidences.size(), 8u);
        for (const float confidence : whole.confidences) {
            how.stop.exit_confidence = std::nextafter(confidence, 1.0f);
            const Draft plain = *draft(how, {});
            lengths.insert(plain.tokens.size());
            const Draft guessed = *draft(how, whole.tokens);
            expect_same_draft(guessed, plain);
            EXPECT_EQ(guessed.n_guessed, static_cast<int>(plain.tokens.size()));
            EXPECT_EQ(guessed.n_passes, 1);
        }
    }
    EXPECT_GT(lengths.size(), 2u) << "drafts stop at their first token, and later";
}

TEST_F(GuessedDrafts, StopAtTheEndOfTheText) {
    const ModulePlan drafting = plan("m1=skip");
    const DraftWithPlan how{.plan = &drafting, .stop = {.n_max = 8}};
    const Draft whole = *draft(how, {});
    for (const Token end : whole.tokens) {
        is_end_of_text_ = [end](Token token) { return token == end; };
        const Draft plain = *draft(how, {});
        EXPECT_EQ(plain.tokens.back(), end);
        const Draft guessed = *draft(how, whole.tokens);
        expect_same_draft(guessed, plain);
        EXPECT_EQ(guessed.n_guessed, static_cast<int>(plain.tokens.size()));
        EXPECT_EQ(guessed.n_passes, 1);
    }
}

TEST_F(GuessedDrafts, CanBeCancelledDuringTheGuessPass) {
    const ModulePlan drafting = plan("m1=skip");
    model_.backend.set_abort([] { return true; });
    EXPECT_FALSE(draft({.plan = &drafting, .stop = {.n_max = 8}}, {1, 2, 3}).has_value());
    model_.backend.set_abort({});
    EXPECT_TRUE(draft({.plan = &drafting, .stop = {.n_max = 8}}, {1, 2, 3}).has_value());
}

}  // namespace
}  // namespace knap::test::drafter_test

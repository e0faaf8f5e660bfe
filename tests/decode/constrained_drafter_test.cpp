// Where the drafts of a plan end under a constraint.
#include <functional>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "decode/drafter.h"
#include "forward/plan_text.h"
#include "support/fake_constraint.h"
#include "support/loaded_model.h"
#include "support/tiny_model.h"

namespace knap::test::constrained_drafter_test {
namespace {

using ::testing::ElementsAreArray;

using Tokens = std::vector<Token>;

class ConstrainedDrafter : public ::testing::Test {
  protected:
    static constexpr Token kPending = 11;
    static constexpr std::size_t kLength = 6;

    ConstrainedDrafter() : model_(tiny_model("tiny-llama", "Q8_0")), rig_(model_) {
        rig_.feed(random_tokens(30, model_.config.n_vocab, 8));
    }

    struct Draft {
        DraftTree tree;
        std::vector<float> confidences;
        int n_rows = 0;  // whose leading layers can be reused

        // The first `n` tokens of the chain.
        Tokens chain(std::size_t n) const {
            return {tree.tokens().begin(), tree.tokens().begin() + static_cast<std::ptrdiff_t>(n)};
        }
        // The others.
        Tokens leaves(std::size_t n_chain) const {
            return {tree.tokens().begin() + static_cast<std::ptrdiff_t>(n_chain),
                    tree.tokens().end()};
        }
    };

    Draft draft(TokenConstraint* constraint, int width = 1) {
        Sampler sampler(sampling_, model_.config.n_vocab, 1024);
        sampler.constrain(constraint);
        const std::function<bool(Token)> is_end_of_text = [](Token) { return false; };
        Drafter drafter(rig_.forward, rig_.cache, sampler, rule_, is_end_of_text);
        const ModulePlan plan = parse_plan("m3=skip", model_.config.n_layers);
        Draft out;
        EXPECT_TRUE(
            drafter.draft(kPending,
                          {.plan = &plan,
                           .stop = {.n_max = static_cast<int>(kLength), .exit_confidence = 1e-9f},
                           .width = width},
                          {}, 64, out.tree));
        out.confidences.assign(drafter.confidences().begin(), drafter.confidences().end());
        out.n_rows = drafter.reusable_rows().n_rows;
        return out;
    }

    // Forbids one token at one depth.
    static FakeConstraint forbid(Token token, std::size_t depth) {
        return FakeConstraint(
            [=](const Tokens& text, Token next) { return text.size() != depth || next != token; });
    }

    void sample_by(AcceptanceRule rule) {
        rule_ = rule;
        sampling_ = {.temperature = 1.0f, .top_k = 0, .top_p = 1.0f, .min_p = 0.0f, .seed = 3};
    }

    LoadedModel model_;
    ForwardRig rig_;
    SamplingOptions sampling_{};
    AcceptanceRule rule_ = AcceptanceRule::shared_noise;
};

TEST_F(ConstrainedDrafter, EndsBeforeTheFirstTokenThatDoesNotFit) {
    for (const bool is_sampled : {false, true}) {
        if (is_sampled) {
            sample_by(AcceptanceRule::shared_noise);
        }
        const Draft free = draft(nullptr);
        ASSERT_EQ(free.tree.n_nodes(), static_cast<int>(kLength));
        for (std::size_t depth = 0; depth < kLength; ++depth) {
            FakeConstraint constraint = forbid(free.tree.tokens()[depth], depth);
            const Draft cut = draft(&constraint);
            EXPECT_THAT(cut.tree.tokens(), ElementsAreArray(free.chain(depth)));
            EXPECT_EQ(cut.confidences.size(), depth) << "one for each token";
            EXPECT_EQ(cut.n_rows, static_cast<int>(depth) + 1) << "every row was computed";
            EXPECT_TRUE(constraint.text.empty()) << "drafts move a copy";
        }
    }
}

// The ratio rule must see every draw (docs/methods.md, "Conditions for exact sampling").
TEST_F(ConstrainedDrafter, EndsAfterADrawThatDoesNotFit) {
    sample_by(AcceptanceRule::ratio);
    const Draft free = draft(nullptr);
    FakeConstraint constraint = forbid(free.tree.tokens()[2], 2);
    const Draft cut = draft(&constraint);
    EXPECT_THAT(cut.tree.tokens(), ElementsAreArray(free.chain(3)));
    EXPECT_NE(cut.tree.drawn_from(1), nullptr);
}

TEST_F(ConstrainedDrafter, LeavesOutSiblingsThatDoNotFit) {
    const Draft free = draft(nullptr, /*width=*/3);
    const Tokens leaves = free.leaves(kLength);
    ASSERT_EQ(leaves.size(), 2 * kLength);
    FakeConstraint constraint = forbid(leaves[2], 1);  // the first of the second token
    const Draft cut = draft(&constraint, 3);
    Tokens expected = leaves;
    expected.erase(expected.begin() + 2);
    EXPECT_THAT(cut.leaves(kLength), ElementsAreArray(expected));
}

TEST_F(ConstrainedDrafter, KeepsSiblingsThatWereDrawn) {
    sample_by(AcceptanceRule::ratio);
    const Draft free = draft(nullptr, /*width=*/3);
    const Tokens leaves = free.leaves(kLength);
    FakeConstraint constraint = forbid(leaves[2], 1);
    EXPECT_THAT(draft(&constraint, 3).leaves(kLength), ElementsAreArray(leaves));
}

}  // namespace
}  // namespace knap::test::constrained_drafter_test

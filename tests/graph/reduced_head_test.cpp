// Passes with a reduced head: the logits of its tokens are bit-identical to the whole head's.
#include <cmath>

#include <gtest/gtest.h>

#include "forward/forward.h"
#include "model/head_subset.h"
#include "support/held_tokens.h"
#include "support/loaded_model.h"
#include "support/tiny_model.h"

namespace knap::test::reduced_head_test {
namespace {

class ReducedHead : public ::testing::TestWithParam<const char*> {
  protected:
    ReducedHead()
        : model_(tiny_model("tiny-llama", GetParam())),
          rig_(model_),
          head_(*rig_.draft_head),
          whole_(model_.config.n_layers),
          reduced_(model_.config.n_layers) {
        reduced_.set_head(HeadLevel::reduced);
        rig_.feed(random_tokens(40, model_.config.n_vocab, 4));
    }

    std::vector<std::vector<float>> run(const ModulePlan& plan, int n_rows) {
        const auto tokens = random_tokens(n_rows, model_.config.n_vocab, 9);
        return rig_.run({.tokens = tokens, .plan = &plan, .first_row = 40});
    }

    void expect_same_logits_where_there_are_any(int n_rows) {
        const auto expected = run(whole_, n_rows);
        const auto found = run(reduced_, n_rows);
        std::vector<bool> is_held(static_cast<std::size_t>(model_.config.n_vocab));
        for (const Token token : held_tokens(head_, model_.config.n_vocab)) {
            is_held[static_cast<std::size_t>(token)] = true;
        }
        for (std::size_t row = 0; row < expected.size(); ++row) {
            for (std::size_t token = 0; token < is_held.size(); ++token) {
                ASSERT_EQ(found[row][token], is_held[token] ? expected[row][token] : -INFINITY)
                    << "row " << row << " of " << n_rows << ", token " << token;
            }
        }
    }

    LoadedModel model_;
    ForwardRig rig_;
    HeadSubset& head_;
    ModulePlan whole_;
    ModulePlan reduced_;
};

TEST_P(ReducedHead, GivesTheWholeHeadsLogitsForItsTokens) {
    head_.begin(std::vector<Token>{130, 251, 90});
    for (const int n_rows : {1, 2, 5, 9}) {
        expect_same_logits_where_there_are_any(n_rows);
    }
}

TEST_P(ReducedHead, GrowsWithoutBuildingAnotherGraph) {
    head_.begin(std::vector<Token>{130});
    expect_same_logits_where_there_are_any(1);
    const std::int64_t n_built = rig_.forward.statistics().graphs.built;
    head_.add(140);
    expect_same_logits_where_there_are_any(1);
    head_.begin(random_tokens(300, model_.config.n_vocab, 3));
    expect_same_logits_where_there_are_any(1);
    EXPECT_EQ(rig_.forward.statistics().graphs.built, n_built);
}

INSTANTIATE_TEST_SUITE_P(Types, ReducedHead, ::testing::Values("F32", "Q8_0", "Q4_1"));

TEST(ReducedHeads, CountAsScratchOnceUsed) {
    LoadedModel model(tiny_model("tiny-llama", "Q8_0"));
    ForwardRig rig(model);
    const std::vector<Token> token{5};
    rig.run({.tokens = token});
    const std::size_t before = rig.forward.statistics().scratch_bytes;
    ModulePlan reduced(model.config.n_layers);
    reduced.set_head(HeadLevel::reduced);
    rig.run({.tokens = token, .plan = &reduced});
    EXPECT_EQ(rig.forward.statistics().scratch_bytes, before + rig.draft_head->bytes());
    EXPECT_GT(rig.draft_head->bytes(), 0u);
}

TEST(ReducedHeads, PassesWithoutLogitsShareTheirGraph) {
    LoadedModel model(tiny_model("tiny-llama", "Q8_0"));
    ForwardRig rig(model);
    const std::vector<Token> token{5};
    ModulePlan reduced(model.config.n_layers);
    reduced.set_head(HeadLevel::reduced);
    rig.forward.run({.tokens = token});
    const std::int64_t n_built = rig.forward.statistics().graphs.built;
    rig.forward.run({.tokens = token, .plan = &reduced});
    EXPECT_EQ(rig.forward.statistics().graphs.built, n_built);
}

TEST(ReducedHeads, AreTheCheapestHeadIfThereIsOne) {
    LoadedModel model(tiny_model("tiny-llama", "Q8_0"));
    ForwardRig rig(model);
    EXPECT_EQ(rig.forward.cheapest_head(), HeadLevel::reduced);
    DirectRunner runner(rig.single.pipeline());
    const Forward without(rig.single.pipeline(), runner, rig.cache);
    EXPECT_EQ(without.cheapest_head(), HeadLevel::full);
}

}  // namespace
}  // namespace knap::test::reduced_head_test

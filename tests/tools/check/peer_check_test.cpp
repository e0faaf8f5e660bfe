#include "tools/check/peer_check.h"

#include <gtest/gtest.h>

#include "support/loaded_model.h"
#include "support/tiny_model.h"

namespace knap::test::peer_check_test {
namespace {

class PeerCheck : public ::testing::Test {
  protected:
    PeerCheck()
        : engine_({.model_path = tiny_model("tiny-llama", "F32"), .n_threads = 1}),
          prompts_{{"short", random_tokens(5, 256, 1)}, {"longer", random_tokens(70, 256, 2)}} {}

    Engine engine_;
    std::vector<CheckPrompt> prompts_;
};

TEST_F(PeerCheck, LogitsAreCloseToLibllamas) {
    const auto report = check_against_libllama(engine_, prompts_, {});
    ASSERT_TRUE(report.has_value());
    EXPECT_EQ(report->n_rows, 75);
    EXPECT_GT(report->ours.max_difference, 0);
    EXPECT_LT(report->ours.max_difference, 0.05);
    EXPECT_LT(report->ours.mean_difference, report->ours.max_difference);
    EXPECT_GT(report->ours.equal_choices, 0.9);
    EXPECT_LE(report->ours.equal_choices, 1.0);
    EXPECT_LT(report->ours.max_gap_of_unequal, 0.1);
    EXPECT_LT(report->flash.max_difference, 0.05);
}

TEST_F(PeerCheck, EachPromptIsComputedSeparately) {
    const auto both = check_against_libllama(engine_, prompts_, {});
    const auto second = check_against_libllama(engine_, std::span(prompts_).last(1), {});
    ASSERT_TRUE(both && second);
    EXPECT_EQ(second->n_rows, 70);
    EXPECT_LE(second->ours.max_difference, both->ours.max_difference);
    const std::vector<CheckPrompt> twice{prompts_[1], prompts_[1]};
    const auto repeated = check_against_libllama(engine_, twice, {});
    EXPECT_DOUBLE_EQ(repeated->ours.max_difference, second->ours.max_difference);
    EXPECT_NEAR(repeated->ours.mean_difference, second->ours.mean_difference, 1e-12);
}

TEST_F(PeerCheck, ComparesTheBeginningOfALongPrompt) {
    const std::vector<CheckPrompt> prompts{{"long", random_tokens(700, 256, 3)}};
    double last = 0;
    const auto report = check_against_libllama(
        engine_, prompts, {.on_progress = [&](double fraction) { last = fraction; }});
    ASSERT_TRUE(report.has_value());
    EXPECT_EQ(report->n_rows, 512);
    EXPECT_DOUBLE_EQ(last, 1.0);
}

TEST_F(PeerCheck, EndsWhenCancelled) {
    EXPECT_FALSE(check_against_libllama(engine_, prompts_, {.is_cancelled = [] { return true; }}));
}

}  // namespace
}  // namespace knap::test::peer_check_test

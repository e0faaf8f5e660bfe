// Compares one pass of a plan over a text with the plan drafting it token by token.
#include "search/matchness.h"

#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "forward/plan_text.h"
#include "support/logits.h"
#include "support/path_case.h"
#include "support/search_rig.h"
#include "support/tiny_model.h"

namespace knap::test::matchness_test {
namespace {

constexpr int kContext = 90;
constexpr int kWritten = 25;

// A prompt and the whole model's answer, both committed.
class WrittenText {
  public:
    explicit WrittenText(const SearchRigOptions& options = {.n_text = kContext})
        : rig_(options), plan_(parse_plan("m1=skip,a2=skip", rig_.n_layers())) {
        Token next = argmax(rig_.rig.run(
            {.tokens = std::span(rig_.text).last(1), .first_row = options.n_text - 1})[0]);
        while (written_.size() < kWritten) {
            written_.push_back(next);
            next = argmax(rig_.rig.feed(std::span(written_).last(1))[0]);
        }
    }

    std::optional<double> matchness(const ModulePlan& plan, std::size_t n_tokens = kWritten) {
        return knap::matchness(rig_.rig.forward, rig_.rig.cache, plan,
                               std::span(written_).first(n_tokens), kContext);
    }

    // One row at a time, each after the plan's own rows.
    int count_matches_step_by_step() {
        rig_.rig.cache.truncate(kContext);
        int n_matches = 0;
        for (std::size_t i = 0; i + 1 < written_.size(); ++i) {
            const Token chosen =
                argmax(rig_.rig.run({.tokens = std::span(written_).subspan(i, 1),
                                     .plan = &plan_,
                                     .first_row = kContext + static_cast<int>(i)})[0]);
            n_matches += chosen == written_[i + 1] ? 1 : 0;
        }
        return n_matches;
    }

    SearchRig rig_;
    ModulePlan plan_;
    std::vector<Token> written_;
};

class MatchnessPaths : public ::testing::TestWithParam<PathCase> {
  protected:
    WrittenText text_{{.model = tiny_model(GetParam().shape),
                       .n_text = kContext,
                       .forward = GetParam().options(/*capacity=*/256)}};
};

TEST_P(MatchnessPaths, EqualsTheShareMatchedByDraftingTokenByToken) {
    const auto bytes = text_.rig_.rig.cache_bytes();
    const auto score = text_.matchness(text_.plan_);
    EXPECT_EQ(text_.rig_.rig.cache_bytes(), bytes);
    ASSERT_TRUE(score);
    EXPECT_EQ(*score * (kWritten - 1), text_.count_matches_step_by_step());
    EXPECT_LT(*score, 1) << "the plan must differ from the whole model";
}

INSTANTIATE_TEST_SUITE_P(Paths, MatchnessPaths, all_path_cases());

TEST(Matchness, OfTheWholeModelOnItsOwnTextIsOne) {
    WrittenText text;
    EXPECT_EQ(text.matchness(ModulePlan(text.rig_.n_layers())), 1);
    text.written_[3] = (text.written_[3] + 1) % 200;
    EXPECT_LT(*text.matchness(ModulePlan(text.rig_.n_layers())), 1);
}

TEST(Matchness, DoesNotAttendToTheCommittedRowsOfTheText) {
    WrittenText text;
    const auto score = text.matchness(text.plan_);
    EXPECT_GT(*score, 0) << "the plan must match something";
    text.rig_.rig.cache.truncate(kContext);
    EXPECT_EQ(text.matchness(text.plan_), score);
}

TEST(Matchness, IgnoresTokensThatDoNotFitOnePass) {
    WrittenText narrow({.n_text = kContext, .forward = {.n_ubatch = 7}});
    WrittenText crowded({.n_text = kContext, .forward = {.capacity = 128}});
    WrittenText roomy;
    ASSERT_NE(roomy.matchness(roomy.plan_, 8), roomy.matchness(roomy.plan_));
    EXPECT_EQ(narrow.matchness(narrow.plan_), roomy.matchness(roomy.plan_, 8));
    const auto n_fitting = static_cast<std::size_t>(128 - kContext - kWritten);
    EXPECT_EQ(crowded.matchness(crowded.plan_), roomy.matchness(roomy.plan_, n_fitting + 1));
}

TEST(Matchness, IsNulloptWithoutAScratchRow) {
    SearchRig full({.n_text = 128, .forward = {.capacity = 128}});
    EXPECT_FALSE(matchness(full.rig.forward, full.rig.cache, ModulePlan(full.n_layers()),
                           std::span(full.text).last(4), 124));
}

TEST(Matchness, IsNulloptWhenCancelled) {
    WrittenText text;
    int n_cancelled = 0;
    for (int n_polls = 0; n_polls < 200; n_polls = n_polls * 5 / 4 + 1) {
        int n_left = n_polls;
        text.rig_.model.backend.set_abort([&] { return n_left-- <= 0; });
        const auto score = text.matchness(text.plan_);
        text.rig_.model.backend.set_abort({});
        n_cancelled += score ? 0 : 1;
        EXPECT_TRUE(!score || score == text.matchness(text.plan_));
    }
    EXPECT_GT(n_cancelled, 3);
}

}  // namespace
}  // namespace knap::test::matchness_test

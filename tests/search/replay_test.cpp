// Compares replayed rows with real first drafts at each of their positions (docs/methods.md,
// "Replay").
#include "search/replay.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "support/logits.h"
#include "support/path_case.h"
#include "support/search_rig.h"
#include "support/tiny_model.h"

namespace knap::test::replay_test {
namespace {

// Full, skipped and windowed modules, with two different windows.
ModulePlan mixed_plan(int n_layers) {
    ModulePlan plan(n_layers);
    plan.set(0, Module::attention, Level::windowed(4, 24));
    plan.set(1, Module::mlp, Level::skip);
    plan.set(2, Module::attention, Level::skip);
    plan.set(3, Module::attention, Level::windowed(0, 9));
    return plan;
}

std::optional<ReplayResult> replay(SearchRig& rig,
                                   const ModulePlan& plan,
                                   const TargetRows& target,
                                   const TokenChoice& choose = {}) {
    return knap::replay(rig.rig.forward, rig.rig.cache, plan, target, choose);
}

class ReplayPaths : public ::testing::TestWithParam<PathCase> {
  protected:
    ReplayPaths()
        : rig_({.model = tiny_model(GetParam().shape), .forward = {.path = GetParam().path}}) {}

    SearchRig rig_;
};

TEST_P(ReplayPaths, WholeModelAgreesWithItself) {
    const TargetRows target = rig_.target(16);
    const auto result = replay(rig_, ModulePlan(rig_.n_layers()), target);
    ASSERT_TRUE(result);
    EXPECT_EQ(result->n_agreed, 16);
    EXPECT_EQ(result->n_rows, 16);
}

TEST_P(ReplayPaths, TargetsChooseAsDraftsDo) {
    const TokenChoice last = [](int position, std::span<const float> logits) {
        const auto worst = std::ranges::min_element(logits);
        return static_cast<Token>(worst - logits.begin()) + 1000 * position;
    };
    const TargetRows target = collect_target_rows(rig_.rig.forward, rig_.rig.cache, rig_.text,
                                                  {.n_rows = 16, .choose = last});
    const auto result = replay(rig_, ModulePlan(rig_.n_layers()), target, last);
    ASSERT_TRUE(result);
    EXPECT_EQ(result->n_agreed, 16);
    EXPECT_EQ(replay(rig_, ModulePlan(rig_.n_layers()), target)->n_agreed, 0);
}

TEST_P(ReplayPaths, RowsChooseTheTokensOfRealFirstDrafts) {
    constexpr int kRows = 24;
    const ModulePlan plan = mixed_plan(rig_.n_layers());
    const TargetRows target = rig_.target(kRows);
    const auto bytes = rig_.rig.cache_bytes();
    std::vector<Token> chosen;
    const TokenChoice record = [&](int position, std::span<const float> logits) {
        EXPECT_EQ(position, target.first_row + static_cast<int>(chosen.size()) + 1);
        chosen.push_back(argmax(logits));
        // Right in every fourth row, whatever the plan says.
        const Token right = target.choices[chosen.size() - 1];
        return chosen.size() % 4 == 0 ? right : right + 1;
    };
    EXPECT_EQ(replay(rig_, plan, target, record)->n_agreed, kRows / 4);
    const auto by_choice = replay(rig_, plan, target);
    EXPECT_EQ(rig_.rig.cache_bytes(), bytes);

    const std::vector<Token> drafts = rig_.first_drafts(plan, kRows);
    EXPECT_EQ(chosen, drafts);
    const int n_equal = std::inner_product(drafts.begin(), drafts.end(), target.choices.begin(), 0,
                                           std::plus<>(), std::equal_to<>());
    EXPECT_EQ(by_choice->n_agreed, n_equal);
    EXPECT_LT(n_equal, kRows);  // the plan must differ from the whole model
}

INSTANTIATE_TEST_SUITE_P(Paths, ReplayPaths, all_path_cases());

// The argmax of every draft.
std::vector<Token> replayed_choices(SearchRig& rig, const TargetRows& target) {
    std::vector<Token> chosen;
    replay(rig, mixed_plan(rig.n_layers()), target, [&](int, std::span<const float> logits) {
        chosen.push_back(argmax(logits));
        return chosen.back();
    });
    return chosen;
}

TEST(Replay, SplitsRowsIntoPassesThatFit) {
    SearchRig roomy;
    const TargetRows target = roomy.target(24);
    const std::vector<Token> whole = replayed_choices(roomy, target);
    ASSERT_EQ(whole.size(), 24u);
    SearchRig narrow({.forward = {.n_ubatch = 7}});
    EXPECT_EQ(replayed_choices(narrow, target), whole);
    SearchRig crowded({.n_text = 96, .forward = {.capacity = 128}});
    EXPECT_EQ(replayed_choices(crowded, crowded.target(24)), whole);
}

TEST(Replay, WorksOnTheShortestTexts) {
    for (const int n_text : {1, 2, 3}) {
        SearchRig rig({.n_text = n_text});
        const TargetRows target = rig.target(16);
        const auto result = replay(rig, mixed_plan(rig.n_layers()), target);
        ASSERT_TRUE(result);
        EXPECT_EQ(result->n_rows, n_text);
        EXPECT_EQ(replay(rig, ModulePlan(rig.n_layers()), target)->n_agreed, n_text);
    }
}

TEST(Replay, AcceptsATargetWithoutRows) {
    SearchRig rig({.n_text = 128, .forward = {.capacity = 128}});
    const auto result = replay(rig, ModulePlan(rig.n_layers()), {});
    ASSERT_TRUE(result);
    EXPECT_EQ(result->n_rows, 0);
}

TEST(Replay, IsNulloptWhenCancelled) {
    SearchRig rig;
    const TargetRows target = rig.target(16);
    rig.model.backend.set_abort([] { return true; });
    EXPECT_FALSE(replay(rig, mixed_plan(rig.n_layers()), target));
}

}  // namespace
}  // namespace knap::test::replay_test

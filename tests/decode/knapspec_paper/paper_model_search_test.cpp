#include "decode/knapspec_paper/paper_model_search.h"

#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "forward/forward.h"
#include "support/remote_device.h"
#include "support/search_rig.h"
#include "support/strategy_rig.h"

namespace knap::paper_model_search_test {
namespace {

constexpr int kText = 40;
constexpr int kRows = 12;

class PaperModelSearchTest : public ::testing::Test {
  protected:
    PaperModelSearchTest() { rig_.rig.feed(text_); }

    PaperSearchResult find(const PaperOptions& options = {}) {
        PaperModelSearch search(options, rig_.parts());
        return search.find(search.last_rows(text_, kRows));
    }

    test::StrategyRig rig_;
    std::vector<Token> text_ = test::random_tokens(kText, 256, /*seed=*/3);
};

TEST_F(PaperModelSearchTest, LastRowsHaveTheTokensOfTheTextAndEveryStream) {
    PaperModelSearch search({}, rig_.parts());
    const TargetRows rows = search.last_rows(text_, kRows);
    EXPECT_EQ(rows.first_row, kText - kRows);
    EXPECT_TRUE(std::ranges::equal(rows.tokens, std::span(text_).last(kRows)));
    EXPECT_EQ(rows.streams.size(), 2 * static_cast<std::size_t>(rig_.model.config.n_layers) + 1);
    EXPECT_EQ(rows.choices.size(), static_cast<std::size_t>(kRows));
}

TEST_F(PaperModelSearchTest, WithoutSkippingTheModelAgreesWithItself) {
    // Every other state is pruned.
    const PaperSearchResult found = find({.knapsack = {.min_cosine = 0.999999}});
    ASSERT_TRUE(found.choice);
    EXPECT_TRUE(found.choice->plan.is_full());
    EXPECT_EQ(found.choice->acceptance, 1);
    EXPECT_EQ(found.choice->n_candidates, 1);
}

TEST_F(PaperModelSearchTest, TimesComeFromTheProfileIfThereIsOne) {
    const int n_layers = rig_.model.config.n_layers;
    rig_.profile.samples = {{.plan = ModulePlan(n_layers), .n_context = kText, .ms = 5000}};
    EXPECT_NEAR(find().plain_step_ms, 5000, 50);
}

TEST_F(PaperModelSearchTest, WithoutAProfilePassesAreMeasured) {
    const PaperSearchResult found = find();
    EXPECT_FALSE(found.is_cancelled);
    EXPECT_GT(found.plain_step_ms, 0);
}

TEST_F(PaperModelSearchTest, LeavesTheCommittedRowsUnchanged) {
    const std::vector<std::byte> before = rig_.rig.cache_bytes();
    ASSERT_TRUE(find({.knapsack = {.min_cosine = -1}}).choice);
    EXPECT_EQ(rig_.rig.cache.committed(), kText);
    EXPECT_EQ(rig_.rig.cache_bytes(), before);
}

TEST_F(PaperModelSearchTest, CancelledPassCancelsTheSearch) {
    int n_left = 0;
    int n_cancelled = 0;
    for (int n_polls = 0; n_polls < 300; n_polls = n_polls * 5 / 4 + 1) {
        PaperModelSearch search({.knapsack = {.min_cosine = -1}}, rig_.parts());
        const TargetRows rows = search.last_rows(text_, kRows);
        n_left = n_polls;
        rig_.model.backend.set_abort([&] { return n_left-- <= 0; });
        const PaperSearchResult found = search.find(rows);
        rig_.model.backend.set_abort({});
        EXPECT_EQ(found.is_cancelled, !found.choice) << n_polls;
        n_cancelled += found.is_cancelled ? 1 : 0;
    }
    EXPECT_GT(n_cancelled, 3);
}

TEST(PaperModelSearchOnDevice, FindsTheSamePlanWithStreamsOnTheDeviceOrInHostMemory) {
    test::SearchRig rig({.device = test::remote_device()});
    Forward& forward = rig.rig.forward;
    const int n_layers = rig.n_layers();
    const CostProfile profile{
        .layer_classes = std::vector<int>(static_cast<std::size_t>(n_layers)),
        .samples = {{.plan = ModulePlan(n_layers), .n_context = kText, .ms = 5000}}};
    PaperModelSearch search({.knapsack = {.min_cosine = -1}}, {.config = rig.model.config,
                                                               .forward = forward,
                                                               .cache = rig.rig.cache,
                                                               .profile = profile});
    const TargetRows rows = search.last_rows(rig.text, kRows);
    const auto count_bytes_read = [&](std::optional<PaperChoice>& choice) {
        const std::size_t before = forward.statistics().bytes_read;
        choice = search.find(rows).choice;
        return forward.statistics().bytes_read - before;
    };
    std::optional<PaperChoice> kept;
    std::optional<PaperChoice> carried;
    const std::size_t kept_bytes = count_bytes_read(kept);
    const auto lent = forward.borrow_bank(1);
    EXPECT_LT(kept_bytes, count_bytes_read(carried) / 10);
    ASSERT_TRUE(kept && carried);
    EXPECT_EQ(kept->plan, carried->plan);
    EXPECT_EQ(kept->acceptance, carried->acceptance);
    EXPECT_EQ(kept->n_candidates, carried->n_candidates);
}

}  // namespace
}  // namespace knap::paper_model_search_test

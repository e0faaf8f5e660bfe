#include "decode/kangaroo/adapter_head.h"

#include <gtest/gtest.h>

#include "support/logits.h"
#include "support/naive_adapter.h"
#include "support/strategy_rig.h"
#include "support/tiny_adapter.h"

namespace knap::test::adapter_head_test {
namespace {

using Tokens = std::vector<Token>;

TinyGguf random_adapter(ggml_type type) {
    return tiny_adapter({.exit_layer = 2, .type = type});
}

class AdapterRows : public ::testing::Test {
  protected:
    explicit AdapterRows(const char* type = "Q8_0",
                         ggml_type adapter_type = GGML_TYPE_Q8_0,
                         const ForwardOptions& options = {})
        : rig_(tiny_model("tiny-llama", type),
               options,
               write_tiny(random_adapter(adapter_type), "head-adapter.gguf")),
          head_(rig_.adapter_head) {}

    Tokens text(int n, unsigned seed = 1) const {
        return random_tokens(n, rig_.model.config.n_vocab, seed);
    }

    // Fills the target's cache with the rows of `tokens`. Returns the streams at the exit layer
    // from row `first` on.
    std::vector<float> compute(std::span<const Token> tokens, int first = 0) {
        const int capture = 2 * head_.exit_layer();
        rig_.rig.cache.truncate(0);
        const ForwardResult result =
            rig_.rig.forward.run({.tokens = tokens, .captures = std::span(&capture, 1)});
        rig_.rig.cache.commit(static_cast<int>(tokens.size()));
        const auto streams = result.captures.front().subspan(static_cast<std::size_t>(first) *
                                                             static_cast<std::size_t>(n_embd()));
        return {streams.begin(), streams.end()};
    }

    bool follow(AdapterHead& head, std::span<const Token> tokens) {
        return head.follow(tokens, rig_.rig.forward, rig_.rig.cache);
    }

    std::vector<float> logits(AdapterHead& head, std::span<const float> streams, int first_row) {
        const auto row = head.logits(streams, first_row);
        return {row.begin(), row.end()};
    }

    static std::vector<std::byte> bytes(const AdapterHead& head, int n_rows) {
        std::vector<std::byte> out(head.cache().saved_row_bytes() *
                                   static_cast<std::size_t>(n_rows));
        head.cache().read_rows(0, n_rows, out.data());
        return out;
    }

    int n_embd() const { return rig_.model.config.n_embd; }

    std::span<const float> row(std::span<const float> streams, int i) const {
        const auto width = static_cast<std::size_t>(n_embd());
        return streams.subspan(static_cast<std::size_t>(i) * width, width);
    }

    StrategyRig rig_;
    AdapterHead& head_;
};

// In F32, so that results can be compared with plain loops, and in passes of a few rows.
class AdapterNumbers : public AdapterRows {
  protected:
    AdapterNumbers() : AdapterRows("F32", GGML_TYPE_F32, {.capacity = 256, .n_ubatch = 7}) {}
};

TEST_F(AdapterNumbers, LogitsAgreeWithPlainLoops) {
    constexpr int kText = 25;
    constexpr int kDraft = 5;
    const Tokens tokens = text(kText + kDraft);
    ForwardRig whole(rig_.model);
    const int capture = 2 * head_.exit_layer();
    const ForwardResult exact =
        whole.forward.run({.tokens = tokens, .captures = std::span(&capture, 1)});
    const std::vector<float> streams(exact.captures.front().begin(), exact.captures.front().end());
    TinyGguf file = random_adapter(GGML_TYPE_F32);
    const auto expected = naive_adapter_logits(file, rig_.adapter.config(),
                                               rig_.model.weights->tensors().output, streams);

    const auto prompt = std::span(tokens).first(kText);
    const std::vector<int> passes{7, 7, 7, 4};
    rig_.rig.feed(prompt, passes);
    ASSERT_TRUE(follow(head_, prompt)) << "in four passes";
    EXPECT_EQ(head_.cache().committed(), kText);
    constexpr float kRounding = 0.01f;  // keys and values in f16
    for (int i = 0; i < kDraft; ++i) {
        const auto found = logits(head_, row(streams, kText + i), kText + i);
        EXPECT_LT(max_abs_difference(found, expected[static_cast<std::size_t>(kText + i)]),
                  kRounding)
            << i;
    }
}

TEST_F(AdapterRows, CatchingUpLeavesTheTargetUnchanged) {
    const Tokens tokens = text(60);
    compute(tokens);
    const auto before = rig_.rig.cache_bytes();
    ASSERT_TRUE(follow(head_, tokens));
    EXPECT_EQ(rig_.rig.cache_bytes(), before);
    EXPECT_EQ(rig_.rig.cache.committed(), 60);
}

TEST_F(AdapterRows, ExistingRowsAreNotComputedAgain) {
    const Tokens tokens = text(60);
    compute(tokens);
    const auto count = [&] {
        const GraphStatistics& graphs = rig_.rig.forward.statistics().graphs;
        return graphs.built + graphs.reused;
    };
    ASSERT_TRUE(follow(head_, tokens));
    const auto n_passes = count();
    ASSERT_TRUE(follow(head_, tokens));
    EXPECT_EQ(count(), n_passes);
}

TEST_F(AdapterRows, RowsOfAnotherTextAreDropped) {
    Tokens tokens = text(60);
    compute(tokens);
    ASSERT_TRUE(follow(head_, tokens));
    const Tokens other = text(30, 2);
    std::ranges::copy(other, tokens.begin() + 20);
    for (const std::size_t n : {60u, 45u, 20u}) {
        // The text may also get shorter.
        const auto changed = std::span(tokens).first(n);
        compute(changed);
        ASSERT_TRUE(follow(head_, changed));
        AdapterHead fresh(rig_.adapter_parts);
        ASSERT_TRUE(follow(fresh, changed));
        const int n_rows = static_cast<int>(n);
        EXPECT_EQ(head_.cache().committed(), n_rows);
        const std::vector<float> stream = compute(changed, n_rows - 1);
        // Branch rows are summed in cache order, so results are not bit-identical.
        EXPECT_LT(max_abs_difference(logits(head_, stream, n_rows), logits(fresh, stream, n_rows)),
                  0.01f);
    }
}

TEST_F(AdapterRows, DraftRowsBecomeFinalAsFarAsTheyAreAccepted) {
    const Tokens tokens = text(25);
    const std::vector<float> streams = compute(tokens, 20);
    const auto prompt = std::span(tokens).first(20);
    rig_.rig.cache.truncate(20);
    ASSERT_TRUE(follow(head_, prompt));
    for (int i = 0; i < 3; ++i) {
        logits(head_, row(streams, i), 20 + i);
    }
    EXPECT_EQ(head_.cache().committed(), 20);
    head_.accept(std::span(tokens).subspan(20, 2), streams);
    EXPECT_EQ(head_.cache().committed(), 22);
}

TEST_F(AdapterRows, WaitingRowsJoinTheNextPass) {
    const Tokens tokens = text(25);
    const std::vector<float> streams = compute(tokens, 20);
    const auto prompt = std::span(tokens).first(20);
    AdapterHead stepwise(rig_.adapter_parts);
    rig_.rig.cache.truncate(20);
    ASSERT_TRUE(follow(head_, prompt) && follow(stepwise, prompt));
    std::vector<float> expected;
    for (int i = 0; i < 4; ++i) {
        expected = logits(stepwise, row(streams, i), 20 + i);
    }
    // Two rows are drafted and three accepted: the third row waits.
    logits(head_, row(streams, 0), 20);
    logits(head_, row(streams, 1), 21);
    head_.accept(std::span(tokens).subspan(20, 3), streams);
    EXPECT_EQ(head_.cache().committed(), 22);
    rig_.rig.cache.commit(23);
    ASSERT_TRUE(follow(head_, std::span(tokens).first(23)));
    EXPECT_EQ(head_.cache().committed(), 22) << "no pass of its own";
    EXPECT_EQ(logits(head_, row(streams, 3), 23), expected);
    EXPECT_EQ(head_.cache().committed(), 23);
    EXPECT_EQ(bytes(head_, 24), bytes(stepwise, 24));
}

TEST_F(AdapterRows, WaitingRowsAreDroppedWithTheirText) {
    Tokens tokens = text(25);
    const std::vector<float> streams = compute(tokens, 20);
    rig_.rig.cache.truncate(20);
    ASSERT_TRUE(follow(head_, std::span(tokens).first(20)));
    head_.accept(std::span(tokens).subspan(20, 1), streams);  // none drafted, one accepted
    tokens[20] = (tokens[20] + 1) % rig_.model.config.n_vocab;
    const auto changed = std::span(tokens).first(21);
    const std::vector<float> stream = compute(changed, 20);
    AdapterHead fresh(rig_.adapter_parts);
    ASSERT_TRUE(follow(head_, changed) && follow(fresh, changed));
    EXPECT_EQ(head_.cache().committed(), 21);
    EXPECT_LT(max_abs_difference(logits(head_, stream, 21), logits(fresh, stream, 21)), 0.01f);
}

TEST_F(AdapterRows, WaitingRowsAreComputedWithThoseOfLaterPlainSteps) {
    const Tokens tokens = text(25);
    const std::vector<float> streams = compute(tokens, 20);
    rig_.rig.cache.truncate(20);
    ASSERT_TRUE(follow(head_, std::span(tokens).first(20)));
    head_.accept(std::span(tokens).subspan(20, 1), streams);
    rig_.rig.cache.commit(24);
    const auto longer = std::span(tokens).first(24);
    AdapterHead fresh(rig_.adapter_parts);
    ASSERT_TRUE(follow(head_, longer) && follow(fresh, longer));
    EXPECT_EQ(head_.cache().committed(), 24);
    const auto last = row(streams, 4);
    EXPECT_LT(max_abs_difference(logits(head_, last, 24), logits(fresh, last, 24)), 0.01f);
}

TEST_F(AdapterRows, RowsOfACancelledCatchUpAreComputedLater) {
    const Tokens tokens = text(60);
    compute(tokens);
    rig_.model.backend.set_abort([] { return true; });
    EXPECT_FALSE(follow(head_, tokens));
    EXPECT_EQ(head_.cache().committed(), 0);
    rig_.model.backend.set_abort({});
    EXPECT_TRUE(follow(head_, tokens));
    EXPECT_EQ(head_.cache().committed(), 60);
}

TEST_F(AdapterRows, RowsOfACancelledPassKeepWaiting) {
    const Tokens tokens = text(25);
    const std::vector<float> streams = compute(tokens, 20);
    rig_.rig.cache.truncate(20);
    ASSERT_TRUE(follow(head_, std::span(tokens).first(20)));
    logits(head_, row(streams, 0), 20);
    head_.accept(std::span(tokens).subspan(20, 2), streams);
    rig_.rig.cache.commit(22);
    const auto longer = std::span(tokens).first(22);
    ASSERT_TRUE(follow(head_, longer));
    rig_.model.backend.set_abort([] { return true; });
    EXPECT_TRUE(head_.logits(row(streams, 2), 22).empty());
    rig_.model.backend.set_abort({});
    ASSERT_TRUE(follow(head_, longer));
    EXPECT_EQ(head_.cache().committed(), 21);
    EXPECT_FALSE(head_.logits(row(streams, 2), 22).empty());
    EXPECT_EQ(head_.cache().committed(), 22);
}

class FullCache : public AdapterRows {
  protected:
    FullCache() : AdapterRows("Q8_0", GGML_TYPE_Q8_0, {.capacity = 64}) {}
};

TEST_F(FullCache, LeavesNoRoomToCatchUp) {
    const Tokens tokens = text(64);
    compute(tokens);
    EXPECT_FALSE(follow(head_, tokens));
    rig_.rig.cache.truncate(63);
    EXPECT_TRUE(follow(head_, std::span(tokens).first(63))) << "row by row";
}

}  // namespace
}  // namespace knap::test::adapter_head_test

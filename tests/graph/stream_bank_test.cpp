// Rows that stay on a device: passes resume from them, store them and compare with them.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "forward/forward.h"
#include "support/loaded_model.h"
#include "support/remote_device.h"
#include "support/tiny_model.h"

namespace knap::test::stream_bank_test {
namespace {

constexpr int kContext = 30;
constexpr int kRows = 6;

std::vector<int> numbers(int n, int first = 0) {
    std::vector<int> all(static_cast<std::size_t>(n));
    std::iota(all.begin(), all.end(), first);
    return all;
}

std::vector<float> copy(std::span<const float> values) {
    return {values.begin(), values.end()};
}

double cosine_of(std::span<const float> a, std::span<const float> b) {
    const auto dot = [](std::span<const float> x, std::span<const float> y) {
        return std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
    };
    return dot(a, b) / std::sqrt(dot(a, a) * dot(b, b));
}

class BankOnDevice : public ::testing::Test {
  protected:
    BankOnDevice()
        : model_(tiny_model(), Repack::off, 1, Kernels::ggml, remote_device()),
          rig_(model_),
          n_layers_(model_.config.n_layers),
          n_embd_(static_cast<std::size_t>(model_.config.n_embd)),
          tokens_(random_tokens(kRows, model_.config.n_vocab, 2)) {
        rig_.feed(random_tokens(kContext, model_.config.n_vocab, 1));
    }

    std::span<const float> row(std::span<const float> rows, int i) const {
        return rows.subspan(static_cast<std::size_t>(i) * n_embd_, n_embd_);
    }

    // Stores rows unchanged.
    void put(std::span<const float> rows, std::span<const int> to) {
        const int end = 2 * n_layers_;
        rig_.forward.run({.hidden = rows,
                          .entry_layer = n_layers_,
                          .captures = std::span(&end, 1),
                          .bank = {.captured = to}});
    }

    // Reads rows unchanged.
    std::vector<float> read(std::span<const int> from) {
        const int end = 2 * n_layers_;
        return copy(rig_.forward
                        .run({.entry_layer = n_layers_,
                              .captures = std::span(&end, 1),
                              .bank = {.hidden = from}})
                        .captures.front());
    }

    // A pass over the tokens that captures the streams after some modules.
    ForwardResult run(std::span<const int> captures, const BankRows& bank = {}) {
        return rig_.forward.run(
            {.tokens = tokens_, .first_row = kContext, .captures = captures, .bank = bank});
    }

    LoadedModel model_;
    ForwardRig rig_;
    int n_layers_;
    std::size_t n_embd_;
    std::vector<Token> tokens_;
};

TEST_F(BankOnDevice, HoldsWhatPassesCaptured) {
    const std::vector<int> captures{0, 3, 4};
    std::vector<std::vector<float>> expected;
    for (const auto capture : run(captures).captures) {
        expected.push_back(copy(capture));
    }
    const auto bank = rig_.forward.borrow_bank(40);
    const std::vector<int> to = numbers(3 * kRows, 20);
    EXPECT_TRUE(run(captures, {.captured = to}).captures.empty());
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(read(numbers(kRows, 20 + i * kRows)), expected[static_cast<std::size_t>(i)]) << i;
    }
}

TEST_F(BankOnDevice, HoldsCapturedRowsInAnyOrder) {
    const std::vector<int> captures{2};
    const auto expected = copy(run(captures).captures.front());
    const auto bank = rig_.forward.borrow_bank(10);
    const std::vector<int> to{7, 3, 9, 0, 4, 1};
    rig_.forward.run(
        {.tokens = tokens_, .first_row = kContext, .captures = captures, .bank = {.captured = to}});
    for (int i = 0; i < kRows; ++i) {
        EXPECT_EQ(read(std::span(to).subspan(static_cast<std::size_t>(i), 1)),
                  copy(row(expected, i)))
            << i;
    }
}

TEST_F(BankOnDevice, IsResumedFromInAnyOrder) {
    const int middle = 4;
    const auto stream = copy(run(std::span(&middle, 1)).captures.front());
    const auto bank = rig_.forward.borrow_bank(50);
    const std::vector<int> places{40, 3, 17, 9, 22, 0};
    put(stream, places);
    const std::vector<int> rows = numbers(kRows);
    const ForwardRequest rest{.first_row = kContext, .entry_layer = 2, .logit_rows = rows};
    ForwardRequest carried = rest;
    carried.hidden = stream;
    const auto expected = copy(rig_.forward.run(carried).logits);
    ForwardRequest held = rest;
    held.bank.hidden = places;
    EXPECT_EQ(copy(rig_.forward.run(held).logits), expected);
}

TEST_F(BankOnDevice, ComparesCaptures) {
    const std::vector<int> captures{1, 5};
    std::vector<std::vector<float>> streams;
    for (const auto capture : run(captures).captures) {
        streams.push_back(copy(capture));
    }
    const auto bank = rig_.forward.borrow_bank(2 * kRows);
    const std::vector<int> to = numbers(2 * kRows);
    run(captures, {.captured = to});
    // Compares each stream with the other's rows in reverse order.
    std::vector<int> others = numbers(2 * kRows);
    std::ranges::reverse(others);
    const ForwardResult result = run(captures, {.compared = others});
    EXPECT_TRUE(result.captures.empty());
    ASSERT_EQ(result.cosines.size(), others.size());
    for (int i = 0; i < kRows; ++i) {
        const double expected = cosine_of(row(streams[0], i), row(streams[1], kRows - 1 - i));
        const auto at = static_cast<std::size_t>(i);
        EXPECT_NEAR(result.cosines[at], expected, 1e-5) << i;
        EXPECT_NEAR(result.cosines[2 * kRows - 1 - at], expected, 1e-5) << i;
    }
}

TEST_F(BankOnDevice, ComparesBeforeItStores) {
    const int capture = 3;
    const auto bank = rig_.forward.borrow_bank(kRows);
    const std::vector<int> rows = numbers(kRows);
    put(std::vector<float>(n_embd_ * kRows, 1.0f), rows);
    const auto stream = copy(run(std::span(&capture, 1)).captures.front());
    const auto cosines =
        copy(run(std::span(&capture, 1), {.captured = rows, .compared = rows}).cosines);
    const std::vector<float> ones(n_embd_, 1.0f);
    for (int i = 0; i < kRows; ++i) {
        EXPECT_NEAR(cosines[static_cast<std::size_t>(i)], cosine_of(row(stream, i), ones), 1e-5);
    }
    EXPECT_EQ(read(rows), stream);
}

TEST_F(BankOnDevice, ComparesWithWhatEarlierCapturesStored) {
    const std::vector<int> captures{2, 3};
    const auto streams = run(captures).captures;
    const auto before = copy(streams[0]);
    const auto after = copy(streams[1]);
    const auto bank = rig_.forward.borrow_bank(2 * kRows);
    const std::vector<int> to = numbers(2 * kRows);
    put(std::vector<float>(2 * kRows * n_embd_, 1.0f), to);
    std::vector<int> with = numbers(kRows);  // each stream with the earlier one
    with.insert(with.end(), to.begin(), to.begin() + kRows);
    const auto cosines = copy(run(captures, {.captured = to, .compared = with}).cosines);
    for (int i = 0; i < kRows; ++i) {
        EXPECT_NEAR(cosines[static_cast<std::size_t>(kRows + i)],
                    cosine_of(row(before, i), row(after, i)), 1e-5)
            << i;
    }
}

TEST_F(BankOnDevice, RowsOfZerosHaveCosineZero) {
    const auto bank = rig_.forward.borrow_bank(3);
    std::vector<float> rows(3 * n_embd_, 0.0f);
    rows[n_embd_] = 2.5f;
    rows[2 * n_embd_] = std::numeric_limits<float>::quiet_NaN();
    const std::vector<int> all = numbers(3);
    put(rows, all);
    const int end = 2 * n_layers_;
    const auto compare = [&](const std::vector<int>& with) {
        return copy(rig_.forward
                        .run({.entry_layer = n_layers_,
                              .captures = std::span(&end, 1),
                              .bank = {.hidden = all, .compared = with}})
                        .cosines);
    };
    const auto with_zeros = compare({0, 0, 0});
    EXPECT_EQ(with_zeros[0], 0);
    EXPECT_EQ(with_zeros[1], 0);
    EXPECT_TRUE(std::isnan(with_zeros[2]));
    const auto with_ones = compare({1, 1, 1});
    EXPECT_EQ(with_ones[0], 0);
    EXPECT_EQ(with_ones[1], 1);
    EXPECT_TRUE(std::isnan(with_ones[2]));
}

TEST_F(BankOnDevice, HasOneHolderAtATime) {
    auto bank = rig_.forward.borrow_bank(5);
    ASSERT_NE(bank, nullptr);
    EXPECT_EQ(rig_.forward.borrow_bank(1), nullptr);
    bank.reset();
    EXPECT_NE(rig_.forward.borrow_bank(5), nullptr);
}

TEST_F(BankOnDevice, IsKeptUntilALargerOneIsRequested) {
    const std::size_t none = rig_.forward.statistics().scratch_bytes;
    rig_.forward.borrow_bank(8);
    const std::size_t small = rig_.forward.statistics().scratch_bytes;
    EXPECT_GE(small, none + 8 * n_embd_ * sizeof(float));
    rig_.forward.borrow_bank(3);
    EXPECT_EQ(rig_.forward.statistics().scratch_bytes, small);
    rig_.forward.borrow_bank(80);
    EXPECT_GE(rig_.forward.statistics().scratch_bytes, small + 72 * n_embd_ * sizeof(float));
}

TEST_F(BankOnDevice, GraphsFollowItToNewMemory) {
    const std::vector<int> rows = numbers(kRows);
    const std::vector<float> first(n_embd_ * kRows, 1.0f);
    const std::vector<float> second(n_embd_ * kRows, 2.0f);
    {
        const auto bank = rig_.forward.borrow_bank(kRows);
        put(first, rows);
        EXPECT_EQ(read(rows), first);
    }
    const auto bank = rig_.forward.borrow_bank(100 * kRows);
    put(second, rows);
    EXPECT_EQ(read(rows), second);
}

TEST_F(BankOnDevice, HasASizeLimit) {
    const std::size_t before = rig_.forward.statistics().scratch_bytes;
    EXPECT_EQ(rig_.forward.borrow_bank(std::size_t{1} << 40), nullptr);
    EXPECT_EQ(rig_.forward.statistics().scratch_bytes, before);
}

TEST(Bank, IsUnavailableOnTheHostAndOnSeveralDevices) {
    LoadedModel host(tiny_model());
    EXPECT_EQ(ForwardRig(host).forward.borrow_bank(1), nullptr);
    LoadedModel split(tiny_model(), Repack::off, 1, Kernels::ggml, nullptr, {2, 2});
    EXPECT_EQ(ForwardRig(split).forward.borrow_bank(1), nullptr);
}

}  // namespace
}  // namespace knap::test::stream_bank_test

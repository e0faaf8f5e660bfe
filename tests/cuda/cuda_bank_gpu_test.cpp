// Streams that stay on the device between passes of the CUDA kernels.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

#include "search/cosine.h"
#include "support/search_agreement.h"
#include "support/strip_model.h"
#include "support/tiny_model.h"

namespace knap::test::cuda_bank_gpu_test {
namespace {

constexpr int kContext = 120;

struct BankRig {
    explicit BankRig(const char* type = "Q4_0")
        : model(tiny_model("small-llama", type)),
          devices(model.device_models()),
          single(model.config(), devices, 1024, 256),
          text(random_tokens(kContext, model.config().n_vocab, 1)),
          n_layers(model.config().n_layers),
          n_embd(static_cast<std::size_t>(model.config().n_embd)) {
        forward().run({.tokens = text, .first_row = 0});
        single.sequence().commit(kContext);
    }

    Forward& forward() { return single.forward(); }

    // Stores rows unchanged.
    void put(std::span<const float> rows, std::span<const int> to) {
        const int end = 2 * n_layers;
        forward().run({.hidden = rows,
                       .entry_layer = n_layers,
                       .captures = std::span(&end, 1),
                       .bank = {.captured = to}});
    }

    // Reads rows unchanged.
    std::vector<float> read(std::span<const int> from) {
        const int end = 2 * n_layers;
        const auto rows = forward()
                              .run({.entry_layer = n_layers,
                                    .captures = std::span(&end, 1),
                                    .bank = {.hidden = from}})
                              .captures.front();
        return {rows.begin(), rows.end()};
    }

    // Captures of a pass over some tokens.
    ForwardResult run(int n_rows, std::span<const int> captures, const BankRows& bank = {}) {
        return forward().run({.tokens = std::span(text).first(static_cast<std::size_t>(n_rows)),
                              .first_row = kContext,
                              .captures = captures,
                              .bank = bank});
    }

    StripModel model;
    DeviceModels devices;
    SingleSequence single;
    std::vector<Token> text;
    int n_layers;
    std::size_t n_embd;
};

std::vector<int> shuffled(int n, int first) {
    std::vector<int> numbers(static_cast<std::size_t>(n));
    for (int i = 0; i < n; ++i) {
        numbers[static_cast<std::size_t>(i)] = first + i * 7 % n;  // n is no multiple of 7
    }
    return numbers;
}

TEST(BankOfTheKernels, HoldsWhatPassesCapture) {
    KNAP_SKIP_WITHOUT_STRIPS();
    BankRig rig;
    const auto bank = rig.forward().borrow_bank(1000);
    ASSERT_NE(bank, nullptr);
    const std::vector<int> captures{0, 3, 8};
    for (const int n_rows : {1, 6, 16, 40}) {
        std::vector<std::vector<float>> expected;
        for (const auto capture : rig.run(n_rows, captures).captures) {
            expected.emplace_back(capture.begin(), capture.end());
        }
        const std::vector<int> to = shuffled(3 * n_rows, 20);
        EXPECT_TRUE(rig.run(n_rows, captures, {.captured = to}).captures.empty());
        for (std::size_t i = 0; i < captures.size(); ++i) {
            const auto n = static_cast<std::size_t>(n_rows);
            EXPECT_EQ(rig.read(std::span(to).subspan(i * n, n)), expected[i]) << n_rows;
        }
    }
}

TEST(BankOfTheKernels, IsResumedFrom) {
    KNAP_SKIP_WITHOUT_STRIPS();
    BankRig rig;
    const auto bank = rig.forward().borrow_bank(100);
    for (const int n_rows : {1, 6, 40}) {
        const int middle = 4;
        const auto captured = rig.run(n_rows, std::span(&middle, 1)).captures.front();
        const std::vector<float> stream(captured.begin(), captured.end());
        const std::vector<int> places = shuffled(n_rows, 3);
        rig.put(stream, places);
        std::vector<int> rows(static_cast<std::size_t>(n_rows));
        std::iota(rows.begin(), rows.end(), 0);
        ForwardRequest request{
            .hidden = stream, .first_row = kContext, .entry_layer = 2, .logit_rows = rows};
        const auto logits = rig.forward().run(request).logits;
        const std::vector<float> expected(logits.begin(), logits.end());
        request.hidden = {};
        request.bank.hidden = places;
        EXPECT_TRUE(std::ranges::equal(rig.forward().run(request).logits, expected)) << n_rows;
    }
}

// With what earlier captures of the pass stored, but before it stores its own.
TEST(BankOfTheKernels, ComparesInTheOrderOfCaptures) {
    KNAP_SKIP_WITHOUT_STRIPS();
    BankRig rig;
    const auto bank = rig.forward().borrow_bank(12);
    const std::vector<int> captures{2, 5};
    std::vector<std::vector<float>> streams;
    for (const auto capture : rig.run(6, captures).captures) {
        streams.emplace_back(capture.begin(), capture.end());
    }
    const std::vector<int> to{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    std::vector<float> others(12 * rig.n_embd);
    std::iota(others.begin(), others.end(), -700.0f);
    rig.put(others, to);
    const std::vector<int> with{5, 4, 3, 2, 1, 0, 1, 0, 2, 3, 5, 4};
    const ForwardResult result = rig.run(6, captures, {.captured = to, .compared = with});
    ASSERT_EQ(result.cosines.size(), with.size());
    const auto row = [&](const std::vector<float>& rows, int i) {
        return std::span(rows).subspan(static_cast<std::size_t>(i) * rig.n_embd, rig.n_embd);
    };
    for (int i = 0; i < 6; ++i) {
        const auto at = static_cast<std::size_t>(i);
        EXPECT_NEAR(result.cosines[at], cosine(row(streams[0], i), row(others, with[at])), 1e-6);
        EXPECT_NEAR(result.cosines[6 + at],
                    cosine(row(streams[1], i), row(streams[0], with[6 + at])), 1e-6);
    }
}

TEST(BankOfTheKernels, RowsOfZerosHaveCosineZero) {
    KNAP_SKIP_WITHOUT_STRIPS();
    BankRig rig;
    const auto bank = rig.forward().borrow_bank(3);
    std::vector<float> rows(3 * rig.n_embd, 0.0f);
    rows[rig.n_embd] = 2.5f;
    rows[2 * rig.n_embd] = std::numeric_limits<float>::quiet_NaN();
    const std::vector<int> all{0, 1, 2};
    rig.put(rows, all);
    const int end = 2 * rig.n_layers;
    const auto cosines = [&](const std::vector<int>& with) {
        const auto found = rig.forward()
                               .run({.entry_layer = rig.n_layers,
                                     .captures = std::span(&end, 1),
                                     .bank = {.hidden = all, .compared = with}})
                               .cosines;
        return std::vector<float>(found.begin(), found.end());
    };
    EXPECT_EQ(cosines({0, 0, 0})[1], 0);
    EXPECT_EQ(cosines({1, 1, 1})[1], 1);
    EXPECT_TRUE(std::isnan(cosines({1, 1, 1})[2]));
}

TEST(BankOfTheKernels, HasOneHolderAndALimit) {
    KNAP_SKIP_WITHOUT_STRIPS();
    BankRig rig;
    auto bank = rig.forward().borrow_bank(5);
    EXPECT_EQ(rig.forward().borrow_bank(1), nullptr);
    bank.reset();
    EXPECT_NE(rig.forward().borrow_bank(50), nullptr);
    EXPECT_EQ(rig.forward().borrow_bank(std::size_t{1} << 40), nullptr);
}

TEST(BankOfTheKernels, ServesSearches) {
    KNAP_SKIP_WITHOUT_STRIPS();
    for (const char* type : {"Q8_0", "Q4_K"}) {
        BankRig rig(type);
        const auto search = [&](Streams streams) {
            return search_on_device(rig.forward(), rig.single.sequence(), rig.text, 16, streams);
        };
        const DeviceSearch carried = search(Streams::carried);
        EXPECT_GT(carried.plans.size(), 4u);
        const DeviceSearch collected = search(Streams::collected);
        expect_same(collected, carried);
        expect_same(search(Streams::brought), carried);
        EXPECT_LT(collected.bytes_read, carried.bytes_read / 50);
    }
}

}  // namespace
}  // namespace knap::test::cuda_bank_gpu_test

// The best tokens of rows, listed on the device, against the rows themselves.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "kernels/cuda/results/best_tokens.h"
#include "sampling/logit_rows.h"
#include "support/strip_model.h"
#include "support/tiny_model.h"

namespace knap::test::best_tokens_gpu_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The lists of all rows of `logits` [n_rows][n_vocab], each row's merged.
std::vector<std::vector<RankKey>> list(const std::vector<float>& logits, int n_vocab, int n_best) {
    CudaStream stream;
    const int n_rows = static_cast<int>(logits.size()) / n_vocab;
    const std::size_t n_numbers = best_list_numbers(n_vocab, n_best);
    const CudaMemory rows(logits.size() * sizeof(float), "logits");
    const CudaMemory lists(static_cast<std::size_t>(n_rows) * n_numbers * 8, "lists");
    stream.upload(rows.data(), logits.data(), rows.bytes());
    list_best_tokens(rows.as<float>(), n_rows, n_vocab, n_best, lists.as<std::uint64_t>(), stream);
    std::vector<std::uint64_t> numbers(lists.bytes() / 8);
    stream.download(numbers.data(), lists.data(), lists.bytes());
    stream.wait();
    std::vector<std::vector<RankKey>> best(static_cast<std::size_t>(n_rows));
    for (std::size_t i = 0; i < best.size(); ++i) {
        append_best(std::span(numbers).subspan(i * n_numbers, n_numbers), n_best, best[i]);
        std::ranges::sort(best[i]);
    }
    return best;
}

// The n largest with their ties, best first.
std::vector<RankKey> expected_best(std::span<const float> row, int n) {
    Ranking ranking;
    ranking.take_largest(row, static_cast<std::size_t>(n));
    ranking.sort();
    return ranking.keys();
}

class ListedTokens : public ::testing::TestWithParam<int> {};

TEST_P(ListedTokens, BeginWithTheBest) {
    KNAP_SKIP_WITHOUT_STRIPS();
    const int n_vocab = GetParam();
    std::mt19937 random(5);
    std::normal_distribution<float> normal(0.0f, 4.0f);
    for (const int n_best : {1, 2, 40, 128}) {
        std::vector<float> logits(static_cast<std::size_t>(3 * n_vocab));
        for (float& logit : logits) {
            logit = normal(random);
        }
        // The second row has few values, so that many tie; in the third most are forbidden.
        for (int i = 0; i < n_vocab; ++i) {
            float& second = logits[static_cast<std::size_t>(n_vocab + i)];
            second = std::round(second * 16) / 16;
            if (i % 7 != 0) {
                logits[static_cast<std::size_t>(2 * n_vocab + i)] = -kInfinity;
            }
        }
        const auto best = list(logits, n_vocab, n_best);
        for (std::size_t i = 0; i < best.size(); ++i) {
            const auto row = std::span(logits).subspan(i * static_cast<std::size_t>(n_vocab),
                                                       static_cast<std::size_t>(n_vocab));
            const std::vector<RankKey> expected = expected_best(row, n_best);
            ASSERT_GE(best[i].size(), expected.size()) << "row " << i << ", " << n_best;
            EXPECT_TRUE(std::equal(expected.begin(), expected.end(), best[i].begin()));
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Vocabularies,
                         ListedTokens,
                         ::testing::Values(288, 1000, 16384, 16385, 49152, 128256, 262144));

TEST(ListsOfTokens, AreUnusableWhereARowIs) {
    KNAP_SKIP_WITHOUT_STRIPS();
    constexpr int kVocab = 20000;
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), kInfinity}) {
        std::vector<float> logits(2 * kVocab, 1.0f);
        for (int i = 0; i < 2 * kVocab; ++i) {
            logits[static_cast<std::size_t>(i)] = static_cast<float>(i % 3000);
        }
        logits[kVocab + 17000] = bad;
        const auto best = list(logits, kVocab, 4);
        EXPECT_FALSE(best[0].empty());
        EXPECT_TRUE(best[1].empty());
    }
    EXPECT_TRUE(list(std::vector<float>(kVocab, 2.0f), kVocab, 4)[0].empty()) << "too many tie";
    EXPECT_TRUE(list(std::vector<float>(kVocab, -kInfinity), kVocab, 4)[0].empty());
}

// Passes return them for the rows that want them, whatever others want.
TEST(ListsOfTokens, AreThoseOfAPassesLogits) {
    KNAP_SKIP_WITHOUT_STRIPS();
    StripModel model(tiny_model("small-llama", "Q4_0"));
    const DeviceModels devices = model.device_models();
    SingleSequence text(model.config(), devices, 512, 64);
    const auto n_vocab = static_cast<std::size_t>(model.config().n_vocab);
    for (const int n_rows : {1, 5, 16, 40}) {
        const auto tokens = random_tokens(n_rows, model.config().n_vocab, 3);
        std::vector<int> rows;
        for (int i = 0; i < n_rows; i += 2) {
            rows.push_back(i);
        }
        ForwardRequest request{.tokens = tokens, .logit_rows = rows};
        const auto logits = text.forward().run(request).logits;
        const std::vector<float> expected(logits.begin(), logits.end());
        request.n_best = 10;
        const std::size_t before = text.forward().statistics().bytes_read;
        const ForwardResult result = text.forward().run(request);
        EXPECT_LT(text.forward().statistics().bytes_read - before, 600 * rows.size() * 2);
        EXPECT_TRUE(result.logits.empty());
        ASSERT_EQ(result.best.n_rows(), rows.size());
        for (std::size_t i = 0; i < rows.size(); ++i) {
            const auto row = result.best.row(i);
            std::vector<RankKey> best(row.begin(), row.end());
            std::ranges::sort(best);
            const auto first = expected_best(std::span(expected).subspan(i * n_vocab, n_vocab), 10);
            ASSERT_GE(best.size(), first.size());
            EXPECT_TRUE(std::equal(first.begin(), first.end(), best.begin())) << i;
        }
    }
}

}  // namespace
}  // namespace knap::test::best_tokens_gpu_test

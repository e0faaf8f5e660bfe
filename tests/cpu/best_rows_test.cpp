#include "cpu/best_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace knap::test::best_rows_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Rows whose logits have been noted run by run, the last run first.
struct Rows {
    Rows(std::size_t n_rows, std::size_t n_logits, std::size_t n_together)
        : n_vocab(n_logits), n_run(n_together), logits(n_rows * n_logits) {}

    std::span<float> row(std::size_t i) { return std::span(logits).subspan(i * n_vocab, n_vocab); }

    BestTokens list() {
        const std::size_t n_rows = logits.size() / n_vocab;
        rows.begin(n_rows, n_vocab, n_run);
        for (std::size_t i = 0; i < n_rows; ++i) {
            for (std::size_t end = n_vocab; end > 0;) {
                const std::size_t first = (end - 1) / n_run * n_run;
                rows.note(i, first, row(i).subspan(first, end - first));
                end = first;
            }
        }
        return rows.list(logits);
    }

    // Checks a row against a search of the whole row.
    void expect_best(const BestTokens& best, std::size_t i) {
        Ranking ranking;
        ranking.take_largest(row(i), 2);
        ranking.sort();
        std::vector<RankKey> found(best.row(i).begin(), best.row(i).end());
        std::ranges::sort(found);
        ASSERT_GE(found.size(), ranking.keys().size());
        EXPECT_TRUE(
            std::ranges::equal(ranking.keys(), std::span(found).first(ranking.keys().size())))
            << "row " << i << " of " << n_vocab << " logits in runs of " << n_run;
        EXPECT_EQ(std::ranges::adjacent_find(found), found.end()) << "each token once";
    }

    std::size_t n_vocab;
    std::size_t n_run;
    std::vector<float> logits;
    BestRows rows;
};

TEST(BestRows, AreThoseOfTheWholeRow) {
    std::mt19937 random(1);
    for (const std::size_t n_vocab : {2, 31, 512, 1025, 5000}) {
        for (const std::size_t n_run : {32, 512, 544, 2048, 8192}) {
            for (const float step : {0.0f, 0.5f, 4.0f}) {  // 4: most of them tie
                Rows rows(3, n_vocab, n_run);
                std::normal_distribution<float> normal(0.0f, 2.0f);
                for (float& logit : rows.logits) {
                    logit = step > 0 ? step * std::round(normal(random) / step) : normal(random);
                }
                for (std::size_t i = 0; i < n_vocab / 4; ++i) {
                    rows.logits[random() % rows.logits.size()] = -kInfinity;
                }
                const BestTokens best = rows.list();
                ASSERT_EQ(best.n_rows(), 3U);
                for (std::size_t i = 0; i < 3; ++i) {
                    rows.expect_best(best, i);
                }
            }
        }
    }
}

TEST(BestRows, ListFewTokensOfALargeRow) {
    std::mt19937 random(2);
    std::normal_distribution<float> normal;
    Rows rows(1, 50000, 3072);
    std::ranges::generate(rows.logits, [&] { return normal(random); });
    const BestTokens best = rows.list();
    EXPECT_LE(best.row(0).size(), 8U);
    rows.expect_best(best, 0);
}

TEST(BestRows, LeaveOutTokensThatCannotBeChosen) {
    Rows rows(2, 1500, 512);
    std::ranges::fill(rows.logits, -kInfinity);
    rows.row(0)[1100] = -3.0f;
    const BestTokens best = rows.list();
    ASSERT_EQ(best.row(0).size(), 1U);
    EXPECT_EQ(token_of(best.row(0)[0]), 1100);
    EXPECT_TRUE(best.row(1).empty());
}

TEST(BestRows, DoNotTellWhereALogitIsNoNumber) {
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), kInfinity}) {
        Rows rows(3, 1500, 640);
        rows.row(1)[1499] = bad;
        const BestTokens best = rows.list();
        EXPECT_FALSE(best.row(0).empty());
        EXPECT_TRUE(best.row(1).empty());
        EXPECT_FALSE(best.row(2).empty());
    }
}

TEST(BestRows, ForgetThePassBefore) {
    Rows rows(2, 1500, 640);
    rows.row(0)[3] = 9.0f;
    rows.list();
    Rows other(1, 700, 640);
    other.rows = rows.rows;
    other.row(0)[650] = 1.0f;
    const BestTokens best = other.list();
    ASSERT_EQ(best.n_rows(), 1U);
    other.expect_best(best, 0);
}

}  // namespace
}  // namespace knap::test::best_rows_test

#include "kv/sequence.h"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "support/number_store.h"

namespace knap::test::sequence_test {
namespace {

constexpr int kPageRows = 256;

class Sequences : public ::testing::Test {
  protected:
    explicit Sequences(int n_pages = 8) : memory_(stores(n_pages), shape(n_pages)) {}

    static PageShape shape(int n_pages) { return {.page_rows = kPageRows, .n_pages = n_pages}; }
    std::vector<std::unique_ptr<KvStore>> stores(int n_pages) {
        auto store = std::make_unique<NumberStore>(shape(n_pages));
        store_ = store.get();
        std::vector<std::unique_ptr<KvStore>> all;
        all.push_back(std::move(store));
        return all;
    }

    // Writes and commits the rows of `tokens` that are missing.
    void compute(Sequence& sequence, std::span<const Token> tokens) {
        const int n_rows = static_cast<int>(tokens.size());
        ASSERT_TRUE(sequence.reserve(n_rows));
        for (int row = sequence.committed(); row < n_rows; ++row) {
            store_->at(sequence.stored_row(row)) = tokens[static_cast<std::size_t>(row)];
        }
        sequence.commit(n_rows);
    }
    void compute_and_publish(Sequence& sequence, std::span<const Token> tokens) {
        compute(sequence, tokens);
        EXPECT_EQ(sequence.publish_prefix(tokens, true), static_cast<int>(tokens.size()));
    }
    void expect_rows(const Sequence& sequence, std::span<const Token> tokens) {
        ASSERT_EQ(sequence.committed(), static_cast<int>(tokens.size()));
        for (int row = 0; row < sequence.committed(); ++row) {
            ASSERT_EQ(store_->at(sequence.stored_row(row)), tokens[static_cast<std::size_t>(row)]);
        }
    }
    int n_free() { return memory_.pool().n_free(); }

    static std::vector<Token> text(int n, Token first = 1) {
        std::vector<Token> tokens;
        for (int i = 0; i < n; ++i) {
            tokens.push_back(first + i);
        }
        return tokens;
    }

    NumberStore* store_ = nullptr;
    KvMemory memory_;
};

using SequencesDeathTest = Sequences;

TEST_F(Sequences, CommitAndTruncateMoveTheBoundary) {
    Sequence sequence(memory_, 64);
    EXPECT_EQ(sequence.committed(), 0);
    sequence.commit(10);
    sequence.commit(64);
    EXPECT_EQ(sequence.committed(), 64);
    sequence.truncate(3);
    EXPECT_EQ(sequence.committed(), 3);
}

TEST_F(SequencesDeathTest, MovingTheBoundaryTheWrongWayIsABug) {
    Sequence sequence(memory_, 64);
    sequence.commit(10);
    EXPECT_DEATH(sequence.commit(9), "moves forward");
    EXPECT_DEATH(sequence.commit(65), "within the cache");
    EXPECT_DEATH(sequence.truncate(11), "moves backward");
    EXPECT_DEATH(sequence.copy_row(12, 9), "only scratch rows");
}

TEST_F(Sequences, TakesPagesAsItGrowsAndReturnsThem) {
    Sequence sequence(memory_, 1024);
    EXPECT_EQ(n_free(), 8);
    EXPECT_TRUE(sequence.reserve(1));
    EXPECT_EQ(n_free(), 7);
    EXPECT_TRUE(sequence.reserve(kPageRows));
    EXPECT_EQ(n_free(), 7);
    EXPECT_TRUE(sequence.reserve(kPageRows + 1));
    EXPECT_EQ(n_free(), 6);
    sequence.commit(3);
    sequence.return_scratch();
    EXPECT_EQ(n_free(), 7);
    sequence.release();
    EXPECT_EQ(n_free(), 8);
    EXPECT_EQ(sequence.committed(), 0);
}

TEST_F(Sequences, TakesNothingIfNotEverythingIsThere) {
    Sequence large(memory_, 2048);
    ASSERT_TRUE(large.reserve(7 * kPageRows));
    Sequence other(memory_, 2048);
    EXPECT_FALSE(other.reserve(2 * kPageRows));
    EXPECT_EQ(n_free(), 1);
    EXPECT_TRUE(other.reserve(kPageRows));
}

TEST_F(Sequences, ForkSharesPagesUntilOneWrites) {
    const auto beginning = text(300);
    Sequence first(memory_, 1024);
    compute(first, beginning);
    Sequence second(memory_, 1024);
    second.fork_from(first);
    EXPECT_EQ(n_free(), 6);
    expect_rows(second, beginning);

    auto longer = beginning;
    longer.push_back(-1);
    compute(second, longer);
    EXPECT_EQ(n_free(), 5);
    EXPECT_EQ(store_->n_copied, 300 - kPageRows);  // of the page that both had begun
    auto other = beginning;
    other.push_back(-2);
    compute(first, other);
    EXPECT_EQ(store_->n_copied, 300 - kPageRows);
    expect_rows(second, longer);
    expect_rows(first, other);
}

TEST_F(Sequences, AdoptsWhatThePrefixCacheHas) {
    const auto tokens = text(600);
    {
        Sequence first(memory_, 1024);
        compute_and_publish(first, tokens);
    }
    EXPECT_EQ(n_free(), 5);
    auto other = text(700);
    other[590] = -5;
    Sequence second(memory_, 1024);
    EXPECT_EQ(second.adopt_prefix(other), 590);
    expect_rows(second, std::span(other).first(590));
    compute(second, other);
    expect_rows(second, other);
    Sequence third(memory_, 1024);
    compute(third, text(20));
    EXPECT_EQ(third.adopt_prefix(tokens), 580);
    expect_rows(third, tokens);
    EXPECT_EQ(third.adopt_prefix(tokens), 0);
    expect_rows(third, tokens);
}

TEST_F(Sequences, RowsThatWerePublishedSurviveTheirOwner) {
    const auto tokens = text(300);
    Sequence first(memory_, 1024);
    compute_and_publish(first, tokens);
    first.truncate(260);
    auto rewritten = tokens;
    for (std::size_t i = 260; i < rewritten.size(); ++i) {
        rewritten[i] = -7;
    }
    compute(first, rewritten);
    Sequence second(memory_, 1024);
    EXPECT_EQ(second.adopt_prefix(tokens), 300);
    expect_rows(second, tokens);
    expect_rows(first, rewritten);
}

TEST_F(Sequences, WholePagesThatWerePublishedSurviveTheirOwner) {
    const auto tokens = text(700);
    Sequence first(memory_, 1024);
    compute_and_publish(first, tokens);
    first.truncate(10);
    auto rewritten = tokens;
    std::fill(rewritten.begin() + 10, rewritten.end(), -7);
    for (const int n_rows : {11, 300, 700}) {  // page by page
        compute(first, std::span(rewritten).first(static_cast<std::size_t>(n_rows)));
    }
    expect_rows(first, rewritten);
    Sequence second(memory_, 1024);
    EXPECT_EQ(second.adopt_prefix(tokens), 700);
    expect_rows(second, tokens);
}

// A page that is listed keeps those before it listed.
TEST_F(Sequences, RowsComputedTwiceAreKeptOnce) {
    const std::vector<Token> tokens = text(2 * kPageRows);
    Sequence first(memory_, 8 * kPageRows);
    Sequence second(memory_, 8 * kPageRows);
    compute(second, std::span(tokens).first(kPageRows));
    compute_and_publish(first, std::span(tokens).first(kPageRows));
    EXPECT_EQ(n_free(), 6);
    compute_and_publish(second, tokens);
    EXPECT_EQ(n_free(), 6);
    EXPECT_EQ(first.pages()[0], second.pages()[0]);
    expect_rows(second, tokens);
    first.release();
    EXPECT_TRUE(second.reserve(8 * kPageRows));
}

TEST_F(Sequences, AppendingToAPublishedPageCopiesNothing) {
    const auto tokens = text(300);
    Sequence first(memory_, 1024);
    compute_and_publish(first, tokens);
    compute(first, text(400));
    EXPECT_EQ(store_->n_copied, 0);
}

class FewPages : public Sequences {
  protected:
    FewPages() : Sequences(2) {}
};

TEST_F(FewPages, ThePrefixCacheGivesWayToItsOwner) {
    const auto tokens = text(2 * kPageRows);
    Sequence only(memory_, 2 * kPageRows);
    compute_and_publish(only, tokens);
    only.truncate(300);
    auto rewritten = tokens;
    rewritten[300] = -1;
    compute(only, rewritten);
    expect_rows(only, rewritten);
    Sequence other(memory_, 2 * kPageRows);
    EXPECT_EQ(other.adopt_prefix(tokens), kPageRows);
}

}  // namespace
}  // namespace knap::test::sequence_test

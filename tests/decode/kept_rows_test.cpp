#include "decode/kept_rows.h"

#include <vector>

#include <gtest/gtest.h>

#include "support/fake_round.h"

namespace knap::kept_rows_test {
namespace {

using test::FakeRound;
using test::stream_value;

constexpr int kEmbd = 3;
constexpr int kVocab = 7;
constexpr int kStreams = 5;

void add(KeptRows& kept, int row, int n_drafted, int n_accepted, bool has_siblings = false) {
    const FakeRound round({.row = row,
                           .n_drafted = n_drafted,
                           .n_accepted = n_accepted,
                           .n_embd = kEmbd,
                           .n_vocab = kVocab,
                           .n_streams = kStreams,
                           .has_siblings = has_siblings});
    kept.add(round.outcome(), round.pending(), row);
}

// Expects rows [first, first + n), with every stream as the rounds gave it.
void expect_rows(const TargetRows& rows, int first, int n) {
    EXPECT_EQ(rows.first_row, first);
    ASSERT_EQ(rows.n_rows(), n);
    ASSERT_EQ(rows.streams.size(), static_cast<std::size_t>(kStreams));
    for (int i = 0; i < n; ++i) {
        const auto at = static_cast<std::size_t>(i);
        EXPECT_EQ(rows.tokens[at], test::token_at(first + i, kVocab));
        EXPECT_EQ(rows.choices[at], test::token_at(first + i + 1, kVocab)) << "the next token";
    }
    for (int stream = 0; stream < kStreams; ++stream) {
        std::vector<float> expected;
        for (int i = 0; i < n * kEmbd; ++i) {
            expected.push_back(stream_value(first + i / kEmbd, stream, i % kEmbd));
        }
        EXPECT_EQ(rows.streams[static_cast<std::size_t>(stream)], expected) << stream;
    }
}

TEST(KeptRows, AreThePendingTokenAndTheAcceptedDraftsInOrder) {
    // Rounds with all, some and no drafts accepted, and one without a draft.
    KeptRows kept(kEmbd);
    add(kept, 10, 3, 3);
    add(kept, 14, 4, 1);
    add(kept, 16, 2, 0);
    add(kept, 17, 0, 0);
    expect_rows(kept.rows(), 10, 8);
}

TEST(KeptRows, OfATreeAreThoseOfThePathThatWasAccepted) {
    KeptRows kept(kEmbd);
    add(kept, 10, 3, 3, true);
    add(kept, 14, 4, 1, true);
    add(kept, 16, 2, 0, true);
    expect_rows(kept.rows(), 10, 7);
}

TEST(KeptRows, OldestAreDropped) {
    KeptRows kept(kEmbd);
    add(kept, 10, 3, 3);
    add(kept, 14, 4, 1);
    kept.limit(6);
    expect_rows(kept.rows(), 10, 6);
    kept.limit(3);
    expect_rows(kept.rows(), 13, 3);
}

TEST(KeptRows, StartEmptyAfterClear) {
    KeptRows kept(kEmbd);
    add(kept, 10, 3, 3);
    kept.clear();
    EXPECT_EQ(kept.rows().n_rows(), 0);
    add(kept, 30, 1, 1);
    expect_rows(kept.rows(), 30, 2);
}

}  // namespace
}  // namespace knap::kept_rows_test

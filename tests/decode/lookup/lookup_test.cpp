#include "decode/lookup/lookup.h"

#include <algorithm>
#include <optional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "support/strategy_rig.h"

namespace knap::lookup_test {
namespace {

using Tokens = std::vector<Token>;

// The tokens of a proposal, which must be a chain and must not be sampled; nullopt for a plain
// step.
std::optional<Tokens> drafted(Strategy& strategy, const Tokens& history, int n_room = kMaxDraft) {
    const Proposal proposal = strategy.propose({.history = history, .n_room = n_room});
    if (std::holds_alternative<PlainStep>(proposal.draft)) {
        return std::nullopt;
    }
    const DraftTree& tree = *std::get<DraftTokens>(proposal.draft).tree;
    EXPECT_TRUE(tree.is_chain());
    EXPECT_FALSE(tree.is_empty());
    for (int node = kPendingNode; node < tree.n_nodes(); ++node) {
        EXPECT_EQ(tree.drawn_from(node), nullptr);
    }
    return Tokens(tree.tokens().begin(), tree.tokens().end());
}

std::optional<Tokens> drafted_once(const Tokens& text, const LookupOptions& options = {}) {
    LookupStrategy lookup(options);
    lookup.begin({.prompt = text});
    return drafted(lookup, text);
}

// The definition: try the longest run first, take its latest occurrence, and let the copy continue
// into itself.
std::optional<Tokens> draft_by_rescan(const Tokens& text, const LookupOptions& options) {
    const int size = static_cast<int>(text.size());
    for (int length = options.ngrams.max; length >= options.ngrams.min; --length) {
        for (int next = size - 1; next >= length; --next) {
            if (!std::equal(text.end() - length, text.end(), text.begin() + next - length)) {
                continue;
            }
            Tokens continued = text;
            for (int i = 0; i < options.n_draft; ++i) {
                continued.push_back(continued[next + i]);
            }
            return Tokens(continued.begin() + size, continued.end());
        }
    }
    return std::nullopt;
}

TEST(Lookup, ProposesWhatFollowedAnEarlierMatch) {
    EXPECT_EQ(drafted_once({1, 2, 3, 10, 11, 12, 13, 1, 2, 3}, {.n_draft = 4}),
              (Tokens{10, 11, 12, 13}));
}

TEST(Lookup, MostRecentOccurrenceWins) {
    EXPECT_EQ(drafted_once({1, 2, 3, 10, 1, 2, 3, 20, 1, 2, 3}, {.n_draft = 1}), Tokens{20});
}

TEST(Lookup, LongMatchBeatsARecentOne) {
    EXPECT_EQ(drafted_once({1, 2, 3, 10, 9, 2, 3, 20, 1, 2, 3}, {.n_draft = 1}), Tokens{10});
}

TEST(Lookup, ShorterMatchesAreTriedWhenTheLongOneFails) {
    const Tokens text = {9, 2, 3, 10, 11, 1, 2, 3};
    EXPECT_EQ(drafted_once(text, {.n_draft = 2}), (Tokens{10, 11}));
    EXPECT_EQ(drafted_once(text, {.ngrams = {.min = 3}, .n_draft = 2}), std::nullopt);
}

TEST(Lookup, OneTokenIsNoMatchByDefault) {
    const Tokens text = {3, 10, 11, 3};
    EXPECT_EQ(drafted_once(text), std::nullopt);
    EXPECT_EQ(drafted_once(text, {.ngrams = {.min = 1}, .n_draft = 2}), (Tokens{10, 11}));
}

TEST(Lookup, TextWithoutRepetitionIsDecodedPlainly) {
    EXPECT_EQ(drafted_once({1, 2, 3, 4, 5, 6}), std::nullopt);
    EXPECT_EQ(drafted_once({}), std::nullopt);
}

TEST(Lookup, LoopContinuesForTheWholeDraft) {
    EXPECT_EQ(drafted_once({7, 7, 7}), Tokens(10, 7));
    EXPECT_EQ(drafted_once({1, 2, 3, 1, 2, 3}, {.n_draft = 8}), (Tokens{1, 2, 3, 1, 2, 3, 1, 2}));
}

TEST(Lookup, StaysWithinTheRoom) {
    const Tokens text = {1, 2, 3, 10, 11, 12, 13, 1, 2, 3};
    LookupStrategy lookup({.n_draft = 3});
    lookup.begin({.prompt = text});
    EXPECT_EQ(drafted(lookup, text, 2), (Tokens{10, 11}));
    EXPECT_EQ(drafted(lookup, text, 3), (Tokens{10, 11, 12}));
    EXPECT_EQ(drafted(lookup, text, 4), (Tokens{10, 11, 12}));
    EXPECT_EQ(drafted(lookup, text, 0), std::nullopt);
}

TEST(Lookup, FindsMatchesInTheAnswer) {
    LookupStrategy lookup({.n_draft = 2});
    lookup.begin({.prompt = Tokens{1, 2}});
    EXPECT_EQ(drafted(lookup, {1, 2, 5}), std::nullopt);
    EXPECT_EQ(drafted(lookup, {1, 2, 5, 6, 8, 9}), std::nullopt);
    EXPECT_EQ(drafted(lookup, {1, 2, 5, 6, 8, 9, 5, 6}), (Tokens{8, 9}));
}

TEST(Lookup, ContinuedConversationIsRemembered) {
    LookupStrategy lookup({.n_draft = 2});
    lookup.begin({.prompt = Tokens{1, 2}});
    EXPECT_EQ(drafted(lookup, {1, 2, 5, 6, 8, 9}), std::nullopt);
    lookup.begin({.prompt = Tokens{1, 2, 5, 6, 8, 9, 30, 31}});
    EXPECT_EQ(drafted(lookup, {1, 2, 5, 6, 8, 9, 30, 31, 5, 6}), (Tokens{8, 9}));
}

TEST(Lookup, NewPromptForgetsThePreviousOne) {
    // The pair that ends each second prompt occurs before only in the first prompt.
    const Tokens first = {1, 2, 3, 4, 5};
    for (const Tokens& second : {Tokens{3, 4}, {1, 2, 9, 3, 4}, {9, 8, 7, 6, 5, 10, 3, 4}}) {
        LookupStrategy lookup({});
        lookup.begin({.prompt = first});
        EXPECT_EQ(drafted(lookup, first), std::nullopt);
        lookup.begin({.prompt = second});
        EXPECT_EQ(drafted(lookup, second), std::nullopt);
    }
}

TEST(Lookup, AgreesWithARescanAcrossRequests) {
    constexpr LookupOptions kOptions{.n_draft = 7};
    std::mt19937 random(3);
    for (const unsigned n_letters : {2u, 4u, 12u}) {
        LookupStrategy lookup(kOptions);
        Tokens history;
        for (int request = 0; request < 40; ++request) {
            // Keeps some of the conversation, often all of it.
            history.resize(random() % 2 == 0 ? history.size() : random() % (history.size() + 1));
            for (int round = 0; round < 30; ++round) {
                for (unsigned i = random() % 5; i > 0; --i) {
                    history.push_back(static_cast<Token>(random() % n_letters));
                }
                if (round == 0) {
                    lookup.begin({.prompt = history});
                }
                ASSERT_EQ(drafted(lookup, history), draft_by_rescan(history, kOptions));
            }
        }
    }
}

TEST(Lookup, DraftMaxReplacesTheDefaultLength) {
    const Tokens text(40, 7);
    test::StrategyRig rig;
    for (const auto& [draft_max, expected] : {std::pair{0, 10}, {1, 1}, {kMaxDraft, kMaxDraft}}) {
        const auto lookup =
            build_lookup({.strategy = "lookup", .draft_max = draft_max}, rig.parts());
        EXPECT_EQ(drafted(*lookup, text), Tokens(expected, 7));
    }
}

}  // namespace
}  // namespace knap::lookup_test

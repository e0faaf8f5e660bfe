#include "tools/peer/llama_drafts.h"

#include <algorithm>
#include <random>
#include <string>

#include "llama-common/ngram-cache.h"
#include "llama-common/speculative.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/loaded_model.h"
#include "tools/peer/peer_names.h"

namespace knap::test::llama_drafts_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr int kVocab = 256;

// The i-th token of a phrase that is said again and again.
class Phrase {
  public:
    explicit Phrase(int n) : tokens_(random_tokens(n, kVocab, 1)) {}
    Token at(std::size_t i) const { return tokens_[i % tokens_.size()]; }
    std::vector<Token> from(std::size_t first, std::size_t n) const {
        std::vector<Token> text;
        for (std::size_t i = first; i < first + n; ++i) {
            text.push_back(at(i));
        }
        return text;
    }

  private:
    std::vector<Token> tokens_;
};

std::vector<std::string> drafting_peers() {
    return {kPeerNames.begin() + 1, kPeerNames.end()};
}

TEST(PeerNames, AreThoseOfLlamaCommonWithoutASecondModel) {
    std::size_t n = 0;
    for (int type = 0; type < COMMON_SPECULATIVE_TYPE_COUNT; ++type) {
        const std::string name =
            common_speculative_type_to_str(static_cast<common_speculative_type>(type));
        const bool is_listed = name.starts_with("ngram-");
        EXPECT_EQ(is_peer(name), is_listed) << name;
        n += is_listed ? 1 : 0;
    }
    EXPECT_EQ(n + 1, kPeerNames.size());
    EXPECT_TRUE(is_peer("llama"));
    EXPECT_THAT(peer_names(), HasSubstr("llama|ngram-simple|"));
}

class LlamaDraftsOf : public ::testing::TestWithParam<std::string> {};

TEST_P(LlamaDraftsOf, RepetitionIsDraftedUpToTheLimit) {
    const Phrase phrase(80);
    for (const std::size_t n_most : {1u, 5u, 200u}) {
        LlamaDrafts drafts(GetParam());
        drafts.begin(phrase.from(0, 320));
        const auto draft = drafts.draft(phrase.at(320), static_cast<int>(n_most));
        EXPECT_GE(draft.size(), std::min<std::size_t>(n_most, 8));
        EXPECT_LE(draft.size(), n_most);
        EXPECT_EQ(std::vector(draft.begin(), draft.end()), phrase.from(321, draft.size()));
    }
}

TEST_P(LlamaDraftsOf, AcceptedTokensBelongToTheText) {
    const Phrase phrase(80);
    LlamaDrafts drafts(GetParam());
    drafts.begin(phrase.from(0, 320));
    std::size_t n_text = 320;
    for (int round = 0; round < 8; ++round) {
        const auto draft = drafts.draft(phrase.at(n_text), 6);
        EXPECT_EQ(std::vector(draft.begin(), draft.end()), phrase.from(n_text + 1, draft.size()));
        EXPECT_THAT(draft, Not(IsEmpty())) << round;
        n_text += 1 + draft.size();
        drafts.accept(draft.size());
    }
}

TEST_P(LlamaDraftsOf, NothingIsDraftedWithoutRoomOrText) {
    const Phrase phrase(80);
    LlamaDrafts drafts(GetParam());
    drafts.begin(phrase.from(0, 320));
    EXPECT_THAT(drafts.draft(phrase.at(320), 0), IsEmpty());
    EXPECT_THAT(drafts.draft(phrase.at(320), -1), IsEmpty());
    for (std::size_t n = 1; n < 8; ++n) {
        LlamaDrafts new_drafts(GetParam());
        new_drafts.begin(std::vector<Token>(n, 7));
        const std::size_t n_drafted = new_drafts.draft(7, 8).size();
        EXPECT_TRUE(n_drafted == 0 || n + 1 >= LLAMA_NGRAM_MAX) << n;
        new_drafts.accept(0);
    }
}

// Also after shorter prompts, where what was learned before may lie behind the end.
TEST_P(LlamaDraftsOf, AnyTextsCanFollowEachOther) {
    std::mt19937 random(7);
    const auto up_to = [&](std::size_t n) { return static_cast<std::size_t>(random() % (n + 1)); };
    LlamaDrafts drafts(GetParam());
    for (int prompt = 0; prompt < 60; ++prompt) {
        const Phrase phrase(1 + static_cast<int>(up_to(90)));
        std::size_t n_text = 1 + up_to(600);
        drafts.begin(phrase.from(0, n_text));
        for (int round = 0; round < 30; ++round) {
            const bool breaks = up_to(4) == 0;
            const Token pending =
                breaks ? static_cast<Token>(up_to(kVocab - 1)) : phrase.at(n_text);
            const auto draft = drafts.draft(pending, 40);
            ASSERT_LE(draft.size(), 40u);
            ASSERT_TRUE(std::ranges::all_of(
                draft, [](Token token) { return token >= 0 && token < kVocab; }));
            const std::size_t n_accepted = up_to(draft.size());
            n_text += 1 + n_accepted;
            drafts.accept(n_accepted);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(All,
                         LlamaDraftsOf,
                         ::testing::ValuesIn(drafting_peers()),
                         [](const auto& test) {
                             std::string name = test.param;
                             std::ranges::replace(name, '-', '_');
                             return name;
                         });

// The table of a server is shared by all requests; the other kinds only see their own text.
TEST(LlamaDrafts, NgramModRemembersEarlierPrompts) {
    const Phrase phrase(200);
    for (const char* name : {"ngram-mod", "ngram-simple"}) {
        LlamaDrafts drafts(name);
        drafts.begin(phrase.from(0, 200));
        std::vector<Token> prompt = random_tokens(100, kVocab, 2);
        std::ranges::copy(phrase.from(0, 40), std::back_inserter(prompt));
        drafts.begin(prompt);
        const auto draft = drafts.draft(phrase.at(40), 10);
        const bool remembers = name == std::string("ngram-mod");
        EXPECT_EQ(std::vector(draft.begin(), draft.end()), phrase.from(41, remembers ? 10 : 0))
            << name;
    }
}

}  // namespace
}  // namespace knap::test::llama_drafts_test

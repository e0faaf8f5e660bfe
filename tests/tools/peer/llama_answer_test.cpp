#include "tools/peer/llama_answer.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "knap/knap.h"

#include "support/loaded_model.h"
#include "support/logits.h"
#include "support/tiny_model.h"
#include "support/trained_model.h"
#include "tools/peer/peer_names.h"

namespace knap::test::llama_answer_test {
namespace {

constexpr int kCtx = 512;
constexpr int kTokens = 96;
constexpr float kRounding = 0.05f;

LlamaPeer tiny_peer(int n_ctx = kCtx) {
    return LlamaPeer(tiny_model("tiny-llama", "F32"), {.n_ctx = n_ctx});
}

std::vector<Token> said_again(const std::vector<Token>& phrase, std::size_t n) {
    std::vector<Token> text;
    while (text.size() < n) {
        text.push_back(phrase[text.size() % phrase.size()]);
    }
    return text;
}

ChooseToken given(const std::vector<Token>& answer) {
    return [&](std::size_t index, std::span<const float>) { return answer[index]; };
}

Token best(std::size_t, std::span<const float> logits) {
    return argmax(logits);
}

// Reads the prompt first.
LlamaAnswer answer(LlamaPeer& peer,
                   LlamaDrafts* drafts,
                   const std::vector<Token>& prompt,
                   const ChooseToken& choose,
                   int n_tokens = kTokens) {
    peer.truncate(0);
    const auto logits = peer.feed(prompt, LlamaPeer::Logits::last_row).front();
    return *write_answer(
        peer, drafts,
        {.prompt = prompt, .first = choose(0, logits), .n_tokens = n_tokens, .choose = choose});
}

// A prompt of a phrase that is said four times, which the answer goes on saying.
struct Repetition {
    std::vector<Token> whole = said_again(random_tokens(70, 256, 1), 280 + kTokens);
    std::vector<Token> prompt{whole.begin(), whole.begin() + 280};
    std::vector<Token> answer{whole.begin() + 280, whole.end()};
};

class LlamaAnswerWith : public ::testing::TestWithParam<std::string> {};

TEST_P(LlamaAnswerWith, RepetitionTakesFewRounds) {
    const Repetition text;
    LlamaPeer peer = tiny_peer();
    LlamaDrafts drafts(GetParam());
    const LlamaAnswer found = answer(peer, &drafts, text.prompt, given(text.answer));
    EXPECT_EQ(found.tokens, text.answer);
    EXPECT_EQ(peer.n_rows(), static_cast<int>(text.whole.size()) - 1);
    EXPECT_LT(found.n_rounds, kTokens / 4);
    EXPECT_EQ(found.n_rounds + found.n_accepted(), kTokens - 1) << "one token of its own a round";
    EXPECT_EQ(found.n_drafted(), found.n_accepted()) << "every draft is right";
    EXPECT_GT(found.draft_ms, 0);
    EXPECT_GT(found.verify_ms, 0);
    EXPECT_GE(found.decode_ms, found.draft_ms + found.verify_ms);
}

// The answer leaves the phrase in its midst: the drafts of the phrase are dropped.
TEST_P(LlamaAnswerWith, RejectedDraftsLeaveNoRows) {
    Repetition text;
    const auto other = random_tokens(kTokens, 256, 9);
    std::copy(other.begin(), other.end() - 20, text.answer.begin() + 20);
    LlamaPeer peer = tiny_peer();
    LlamaDrafts drafts(GetParam());
    const LlamaAnswer found = answer(peer, &drafts, text.prompt, given(text.answer));
    EXPECT_EQ(found.tokens, text.answer);
    EXPECT_LT(found.n_accepted(), found.n_drafted());
    LlamaPeer fresh = tiny_peer();
    fresh.feed(text.prompt, LlamaPeer::Logits::last_row);
    fresh.feed(std::span(text.answer).first(kTokens - 1), LlamaPeer::Logits::last_row);
    ASSERT_EQ(peer.n_rows(), fresh.n_rows());
    const auto last = std::span(text.answer).last(1);
    const auto expected = fresh.feed(last, LlamaPeer::Logits::last_row).front();
    EXPECT_LT(max_abs_difference(peer.feed(last, LlamaPeer::Logits::last_row).front(), expected),
              kRounding);
}

// A model of English over bytes; what it writes greedily comes round again.
TEST_P(LlamaAnswerWith, DraftsChangeAGreedyTextByRoundingOnly) {
    LlamaPeer peer(trained_model(), {.n_ctx = kCtx});
    const Engine engine({.model_path = trained_model(), .n_ctx = kCtx, .n_threads = 1});
    std::string text;
    for (int i = 0; i < 6; ++i) {
        text += "The cat sat on the mat. ";
    }
    const std::vector<Token> prompt = engine.tokenize(text);
    const LlamaAnswer plain = answer(peer, nullptr, prompt, best, 160);
    EXPECT_EQ(plain.n_rounds, 159);
    EXPECT_EQ(plain.n_drafted(), 0);
    LlamaDrafts drafts(GetParam());
    const LlamaAnswer found = answer(peer, &drafts, prompt, best, 160);
    ASSERT_EQ(found.tokens.size(), 160u);
    EXPECT_GT(found.n_accepted(), 0);
    peer.truncate(0);
    std::vector<Token> next = prompt;
    for (const Token token : found.tokens) {
        const auto logits = peer.feed(next, LlamaPeer::Logits::last_row).front();
        ASSERT_GT(logits[static_cast<std::size_t>(token)], std::ranges::max(logits) - kRounding);
        next = {token};
    }
}

TEST_P(LlamaAnswerWith, AnAnswerMayFillTheContext) {
    const Repetition text;
    const int n_ctx = static_cast<int>(text.whole.size());
    LlamaPeer peer = tiny_peer(n_ctx);
    LlamaDrafts drafts(GetParam());
    EXPECT_EQ(answer(peer, &drafts, text.prompt, given(text.answer)).tokens, text.answer);
}

INSTANTIATE_TEST_SUITE_P(
    Peers,
    LlamaAnswerWith,
    ::testing::Values("ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-mod", "ngram-cache"),
    [](const auto& test) {
        std::string name = test.param;
        std::ranges::replace(name, '-', '_');
        return name;
    });

TEST(LlamaAnswer, PositionsOfDraftsAreCounted) {
    const Repetition text;
    LlamaPeer peer = tiny_peer();
    LlamaDrafts drafts("ngram-cache");
    const LlamaAnswer found = answer(peer, &drafts, text.prompt, given(text.answer));
    EXPECT_EQ(found.drafted.size(), 8u) << "the longest draft of ngram-cache";
    EXPECT_EQ(found.accepted, found.drafted);
    EXPECT_GE(found.drafted.front(), found.drafted.back());
}

TEST(LlamaAnswer, CanBeCancelled) {
    const Repetition text;
    LlamaPeer peer = tiny_peer();
    peer.feed(text.prompt, LlamaPeer::Logits::last_row);
    int n_rounds = 0;
    EXPECT_FALSE(write_answer(
        peer, nullptr,
        {.prompt = text.prompt, .n_tokens = kTokens, .choose = best, .is_cancelled = [&] {
             return ++n_rounds > 3;
         }}));
    EXPECT_EQ(n_rounds, 4);
}

}  // namespace
}  // namespace knap::test::llama_answer_test

#include "tools/peer/llama_server.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/loaded_model.h"
#include "support/logits.h"
#include "support/tiny_model.h"
#include "tools/peer/llama_peer.h"

namespace knap::test::llama_server_test {
namespace {

using testing::ElementsAre;

class LlamaServers : public ::testing::Test {
  protected:
    static constexpr int kUbatch = 8;

    LlamaBatch batch(int n_sequences) const {
        return LlamaBatch(model_, {.n_ctx = 256, .n_ubatch = kUbatch, .n_sequences = n_sequences});
    }
    LlamaServerObserver observer() {
        return {.on_start =
                    [this](std::size_t i) { answers_.resize(std::max(i + 1, answers_.size())); },
                .on_token = [this](std::size_t i, Token token) { answers_[i].push_back(token); }};
    }
    std::size_t n_tokens(std::size_t request) const { return answers_[request].size(); }

    std::filesystem::path model_ = tiny_model("tiny-llama", "F32");
    std::vector<std::vector<Token>> answers_;
};

// Every token of the answer is, up to rounding, the best after those before it.
void expect_greedy(LlamaPeer& peer,
                   const std::vector<Token>& prompt,
                   const std::vector<Token>& answer) {
    peer.truncate(0);
    std::vector<Token> next = prompt;
    for (const Token token : answer) {
        const auto logits = peer.feed(next, LlamaPeer::Logits::last_row).front();
        EXPECT_GT(logits[static_cast<std::size_t>(token)], std::ranges::max(logits) - 0.05f);
        next = {token};
    }
}

TEST_F(LlamaServers, AnswersMoreRequestsThanItHasSequences) {
    LlamaBatch sequences = batch(2);
    LlamaServer server(sequences, observer());
    std::vector<std::vector<Token>> prompts;
    for (unsigned i = 0; i < 5; ++i) {
        prompts.push_back(random_tokens(5 + 7 * static_cast<int>(i), 256, i));
        server.add({.prompt = prompts.back(), .n_predict = 3 + static_cast<int>(i)});
    }
    while (server.step()) {
    }
    ASSERT_EQ(answers_.size(), 5u);
    LlamaPeer peer(model_, {.n_ctx = 256});
    for (std::size_t i = 0; i < 5; ++i) {
        EXPECT_EQ(n_tokens(i), 3 + i);
        expect_greedy(peer, prompts[i], answers_[i]);
    }
}

// A prompt of 24 tokens beside one answer takes 4 steps of 8 rows, and the answer goes on in each.
TEST_F(LlamaServers, AnswersGoOnWhileAPromptIsRead) {
    LlamaBatch sequences = batch(2);
    LlamaServer server(sequences, observer());
    server.add({.prompt = random_tokens(6, 256, 1), .n_predict = 100});
    server.step();
    ASSERT_EQ(n_tokens(0), 1u);
    server.add({.prompt = random_tokens(24, 256, 2), .n_predict = 1});
    for (std::size_t step = 1; step <= 4; ++step) {
        server.step();
        EXPECT_EQ(n_tokens(0), 1 + step);
        EXPECT_EQ(n_tokens(1), step == 4 ? 1u : 0u);
    }
}

TEST_F(LlamaServers, OlderPromptsAreReadFirst) {
    LlamaBatch sequences = batch(3);
    LlamaServer server(sequences, observer());
    for (unsigned i = 0; i < 3; ++i) {
        server.add({.prompt = random_tokens(8, 256, i), .n_predict = 1});
    }
    std::vector<std::size_t> counts;
    for (std::size_t step = 0; step < 3; ++step) {
        server.step();
        counts.push_back(n_tokens(step));
    }
    EXPECT_THAT(counts, ElementsAre(1u, 1u, 1u));
    EXPECT_FALSE(server.step());
}

TEST_F(LlamaServers, FeedsAGivenAnswer) {
    LlamaBatch sequences = batch(1);
    LlamaServer server(sequences, observer());
    const std::vector<Token> answer{7, 8, 9};
    const auto prompt = random_tokens(6, 256, 1);
    server.add({.prompt = prompt, .n_predict = 4, .answer = answer});
    while (server.step()) {
    }
    ASSERT_EQ(n_tokens(0), 4u);
    EXPECT_TRUE(std::ranges::equal(std::span(answers_[0]).first(3), answer));
    std::vector<Token> fed = prompt;
    std::ranges::copy(answer, std::back_inserter(fed));
    LlamaPeer peer(model_, {.n_ctx = 256});
    expect_greedy(peer, fed, {answers_[0].back()});
}

}  // namespace
}  // namespace knap::test::llama_server_test

#include "tools/peer/llama_batch.h"

#include <gtest/gtest.h>

#include "support/loaded_model.h"
#include "support/logits.h"
#include "support/tiny_model.h"
#include "tools/peer/llama_peer.h"

namespace knap::test::llama_batch_test {
namespace {

constexpr int kSequences = 3;
constexpr int kSteps = 12;
constexpr int kUbatch = 16;  // less than a prompt

struct Setting {
    bool kv_unified = false;
    bool flash_attention = false;
};

class LlamaBatches : public ::testing::TestWithParam<Setting> {
  protected:
    LlamaBatches() {
        for (unsigned i = 0; i < kSequences; ++i) {
            prompts_.push_back(random_tokens(20 + 9 * static_cast<int>(i), 256, i));
        }
    }

    PeerOptions options(int n_sequences) const {
        return {.n_ctx = 256,
                .n_ubatch = kUbatch,
                .flash_attention = GetParam().flash_attention,
                .n_sequences = n_sequences,
                .kv_unified = GetParam().kv_unified};
    }

    // Logits of the prompt's last row and of kSteps greedy tokens after it, by LlamaPeer.
    std::vector<std::vector<float>> alone(const std::vector<Token>& prompt) const {
        LlamaPeer peer(model_, options(1));
        std::vector<std::vector<float>> rows;
        for (std::vector<Token> next = prompt; rows.size() <= kSteps;) {
            const auto logits = peer.feed(next, LlamaPeer::Logits::last_row).front();
            rows.emplace_back(logits.begin(), logits.end());
            next = {argmax(logits)};
        }
        return rows;
    }

    std::filesystem::path model_ = tiny_model("tiny-llama", "F32");
    std::vector<std::vector<Token>> prompts_;
};

TEST_P(LlamaBatches, ASequenceDecodedAloneHasTheTokensOfLlamaPeer) {
    LlamaBatch batch(model_, options(kSequences));
    for (int sequence = 0; sequence < kSequences; ++sequence) {
        const auto& prompt = prompts_[static_cast<std::size_t>(sequence)];
        const auto expected = alone(prompt);
        Token token = greedy_token(batch.read(sequence, prompt));
        for (int step = 0; step < kSteps; ++step) {
            ASSERT_EQ(token, argmax(expected[static_cast<std::size_t>(step)])) << step;
            const LlamaBatch::Run run{sequence, std::span(&token, 1)};
            token = greedy_token(batch.decode(std::span(&run, 1)).front());
        }
        EXPECT_EQ(batch.n_rows(sequence), static_cast<int>(prompt.size()) + kSteps);
    }
}

// Each sequence attends to its own rows alone. Rows that share a pass may round differently.
TEST_P(LlamaBatches, SequencesDecodedTogetherHaveCloseLogits) {
    LlamaBatch batch(model_, options(kSequences));
    std::vector<std::vector<std::vector<float>>> expected;
    for (int sequence = 0; sequence < kSequences; ++sequence) {
        const auto& prompt = prompts_[static_cast<std::size_t>(sequence)];
        expected.push_back(alone(prompt));
        batch.read(sequence, prompt);
    }
    for (std::size_t step = 0; step < kSteps; ++step) {
        std::vector<Token> tokens;
        for (const auto& rows : expected) {
            tokens.push_back(argmax(rows[step]));
        }
        std::vector<LlamaBatch::Run> runs;
        for (int sequence = 0; sequence < kSequences; ++sequence) {
            runs.push_back({sequence, std::span(&tokens[static_cast<std::size_t>(sequence)], 1)});
        }
        const auto logits = batch.decode(runs);
        for (std::size_t i = 0; i < runs.size(); ++i) {
            EXPECT_LT(max_abs_difference(logits[i], expected[i][step + 1]), 0.05f) << step;
        }
    }
}

TEST_P(LlamaBatches, AClearedSequenceBeginsAgain) {
    LlamaBatch batch(model_, options(kSequences));
    const auto first = batch.read(1, prompts_[0]);
    const std::vector<float> expected(first.begin(), first.end());
    batch.read(2, prompts_[1]);
    batch.clear(1);
    EXPECT_EQ(batch.n_rows(1), 0);
    EXPECT_EQ(batch.n_rows(2), static_cast<int>(prompts_[1].size()));
    EXPECT_LT(max_abs_difference(batch.read(1, prompts_[0]), expected), 0.05f);
}

TEST_P(LlamaBatches, AnotherContextSharesTheWeightsAndNothingElse) {
    LlamaBatch batch(model_, options(kSequences));
    LlamaBatch other(batch, options(1));
    batch.read(0, prompts_[1]);
    EXPECT_EQ(other.n_rows(0), 0);
    EXPECT_EQ(other.options().n_sequences, 1);
    EXPECT_LT(max_abs_difference(other.read(0, prompts_[0]), alone(prompts_[0]).front()), 0.05f);
}

INSTANTIATE_TEST_SUITE_P(Settings,
                         LlamaBatches,
                         ::testing::Values(Setting{false, false},
                                           Setting{false, true},
                                           Setting{true, false},
                                           Setting{true, true}),
                         [](const auto& test) {
                             return std::string(test.param.kv_unified ? "Unified" : "Separate") +
                                    (test.param.flash_attention ? "Flash" : "");
                         });

TEST(LlamaBatch, GreedyTakesTheLowestOfEqualTokens) {
    EXPECT_EQ(greedy_token(std::vector{1.0f, 3.0f, 3.0f}), 1);
}

}  // namespace
}  // namespace knap::test::llama_batch_test

#include "model/head_subset.h"

#include <cmath>
#include <cstring>
#include <numeric>
#include <set>

#include "ggml-backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/held_tokens.h"
#include "support/loaded_model.h"
#include "support/tiny_gguf.h"
#include "support/tiny_model.h"

namespace knap::test::head_subset_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

using Tokens = std::vector<Token>;

constexpr Token kEnd = 250;

// A subset smaller than the vocabulary.
class HeadSubsets : public ::testing::Test {
  protected:
    explicit HeadSubsets(const char* type = "Q8_0")
        : model_(tiny_model("tiny-llama", type)),
          subset_(*model_.weights, model_.backend, Tokens{2, kEnd}) {}

    int capacity() const { return HeadSubset::capacity_for(model_.config.n_vocab); }
    int n_room() const { return capacity() - static_cast<int>(n_kept_); }
    Tokens tokens() const { return held_tokens(subset_, model_.config.n_vocab); }
    Tokens text_tokens() const {
        const Tokens held = tokens();
        return {held.begin() + static_cast<std::ptrdiff_t>(n_kept_), held.end()};
    }

    // Checks that every row in use equals its token's row of the head.
    void expect_rows_of_the_head() {
        const HeadTensors own = subset_.tensors();
        const ggml_tensor* head = model_.weights->tensors().output;
        ASSERT_EQ(own.weight->type, head->type);
        ASSERT_EQ(own.weight->ne[0], head->ne[0]);
        ASSERT_EQ(own.weight->ne[1], capacity());
        const Tokens held = tokens();
        for (std::size_t row = 0; row < held.size(); ++row) {
            const auto token = static_cast<std::size_t>(held[row]);
            const auto* expected = static_cast<const char*>(head->data) + token * head->nb[1];
            const auto* found = static_cast<const char*>(own.weight->data) + row * head->nb[1];
            ASSERT_EQ(std::memcmp(found, expected, head->nb[1]), 0) << "token " << token;
        }
    }

    LoadedModel model_;
    HeadSubset subset_;
    std::size_t n_kept_ = tokens().size();
};

TEST_F(HeadSubsets, HaveTheLowestIdsAndThePermanentTokens) {
    const int n_frequent = static_cast<int>(n_kept_) - 1;  // token 2 is one of them
    EXPECT_EQ(n_frequent, model_.config.n_vocab / 4 / 32 * 32);
    for (Token token = 0; token < n_frequent; ++token) {
        EXPECT_EQ(tokens()[static_cast<std::size_t>(token)], token);
    }
    EXPECT_EQ(tokens().back(), kEnd);
    EXPECT_LT(capacity(), model_.config.n_vocab);
}

TEST_F(HeadSubsets, AddEachTokenOfTheTextOnce) {
    subset_.begin(Tokens{200, 5, 201, 200});
    subset_.add(kEnd);
    subset_.add(202);
    subset_.add(201);
    EXPECT_THAT(text_tokens(), ElementsAre(200, 201, 202));
}

TEST_F(HeadSubsets, ForgetTheTextWhenAnotherBegins) {
    subset_.begin(Tokens{200, 201});
    subset_.begin(Tokens{202});
    EXPECT_THAT(text_tokens(), ElementsAre(202));
    subset_.add(200);
    EXPECT_THAT(text_tokens(), ElementsAre(202, 200));
    EXPECT_THAT(tokens(), Contains(kEnd));
}

TEST_F(HeadSubsets, ReplaceTheOldestTokenWhenFull) {
    const Token first = static_cast<Token>(n_kept_);  // above the lowest ids
    Tokens text;
    for (Token token = first; static_cast<int>(text.size()) < n_room(); ++token) {
        text.push_back(token);
    }
    subset_.begin(text);
    EXPECT_EQ(text_tokens(), text);
    subset_.add(240);
    subset_.add(first);
    subset_.add(241);
    text[0] = 240;
    text[1] = first;
    text[2] = 241;
    EXPECT_EQ(text_tokens(), text);
    EXPECT_THAT(tokens(), Contains(kEnd));
    EXPECT_THAT(tokens(), Not(Contains(first + 1)));
    expect_rows_of_the_head();
}

TEST_F(HeadSubsets, ReplacementWrapsAround) {
    std::vector<Token> others;
    for (Token token = 64; token < model_.config.n_vocab; ++token) {
        if (token != kEnd) {
            others.push_back(token);
        }
    }
    ASSERT_GT(static_cast<int>(others.size()), 2 * n_room());
    subset_.begin(others);
    const std::set<Token> latest(others.end() - n_room(), others.end());
    const Tokens held = text_tokens();
    EXPECT_EQ(std::set<Token>(held.begin(), held.end()), latest);
}

TEST_F(HeadSubsets, CopyRowsAsStored) {
    subset_.begin(Tokens{100, 200});
    expect_rows_of_the_head();
    const HeadTensors before = subset_.tensors();
    subset_.add(150);
    expect_rows_of_the_head();
    subset_.begin(Tokens{170, 100});
    expect_rows_of_the_head();
    EXPECT_EQ(subset_.tensors().weight, before.weight);
    EXPECT_EQ(subset_.tensors().weight->data, before.weight->data);
}

TEST_F(HeadSubsets, AllocateOnFirstUse) {
    subset_.begin(Tokens{100, 200});
    EXPECT_EQ(subset_.bytes(), 0u);
    subset_.tensors();
    const std::size_t row_bytes = model_.weights->tensors().output->nb[1];
    EXPECT_GE(subset_.bytes(), row_bytes * static_cast<std::size_t>(capacity()));
    EXPECT_LT(subset_.bytes(), ggml_nbytes(model_.weights->tensors().output));
}

TEST_F(HeadSubsets, SpreadLogitsOverTheVocabulary) {
    subset_.begin(Tokens{100});
    Tokens held(n_kept_ - 1);  // the lowest ids
    std::iota(held.begin(), held.end(), 0);
    held.insert(held.end(), {kEnd, 100});
    const auto n_rows = static_cast<std::size_t>(capacity());
    const auto n_vocab = static_cast<std::size_t>(model_.config.n_vocab);
    std::vector<float> logits(2 * n_rows, 99.0f);  // for unused rows
    for (std::size_t i = 0; i < held.size(); ++i) {
        logits[i] = static_cast<float>(held[i]);
        logits[n_rows + i] = -logits[i];
    }
    std::vector<float> out(7, 1.0f);
    subset_.spread(logits, out);
    ASSERT_EQ(out.size(), 2 * n_vocab);
    for (std::size_t token = 0; token < n_vocab; ++token) {
        const bool is_held = std::ranges::count(held, static_cast<Token>(token)) > 0;
        const float expected = is_held ? static_cast<float>(token) : -INFINITY;
        EXPECT_EQ(out[token], expected);
        EXPECT_EQ(out[n_vocab + token], is_held ? -expected : expected);
    }
}

TEST(HeadSubset, HasRoomForAQuarterOfASmallVocabularyAndAText) {
    EXPECT_EQ(HeadSubset::capacity_for(49152), 8192 + 2048);
    EXPECT_EQ(HeadSubset::capacity_for(151936), 8192 + 2048);
    EXPECT_EQ(HeadSubset::capacity_for(4096), 1024 + 256);
    EXPECT_EQ(HeadSubset::capacity_for(400), 96 + 64);
    EXPECT_EQ(HeadSubset::capacity_for(24), 24);
    EXPECT_EQ(HeadSubset::capacity_for(1), 1);
}

TEST(HeadSubset, LeavesRoomForATextWithManyPermanentTokens) {
    LoadedModel model(tiny_model("tiny-llama", "F32"));
    Tokens all;
    for (Token token = 0; token < model.config.n_vocab; ++token) {
        all.push_back(token);
    }
    HeadSubset subset(*model.weights, model.backend, all);
    const int n_vocab = model.config.n_vocab;
    subset.begin(Tokens{n_vocab - 1});
    EXPECT_EQ(held_tokens(subset, n_vocab).back(), n_vocab - 1);
    subset.add(n_vocab - 2);
    EXPECT_EQ(held_tokens(subset, n_vocab).back(), n_vocab - 2);
    EXPECT_EQ(static_cast<int>(held_tokens(subset, n_vocab).size()),
              HeadSubset::capacity_for(n_vocab));
}

TEST(HeadSubset, CopiesTheBiasToo) {
    TinyGguf tiny("qwen2");
    tiny.tensors().push_back({"output.bias", GGML_TYPE_F32, {24}});
    tiny.write(temporary_folder() / "head-bias.gguf");
    LoadedModel model(temporary_folder() / "head-bias.gguf");
    HeadSubset subset(*model.weights, model.backend, Tokens{20});
    subset.begin(Tokens{15});
    EXPECT_THAT(held_tokens(subset, model.config.n_vocab), ElementsAre(0, 1, 2, 3, 4, 5, 20, 15));
    const auto* bias = static_cast<const float*>(model.weights->tensors().output_b->data);
    const auto* own = static_cast<const float*>(subset.tensors().bias->data);
    EXPECT_EQ(own[6], bias[20]);
    EXPECT_EQ(own[7], bias[15]);
    EXPECT_EQ(own[5], bias[5]);
}

// Whether ggml has repacked the head.
bool is_repacked(const LoadedModel& model) {
    return !ggml_backend_buffer_is_host(model.weights->tensors().output->buffer);
}

TEST(HeadSubset, IsImpossibleWhenTheHeadIsRepacked) {
    TinyGguf tiny("llama", {}, GGML_TYPE_Q4_0);
    tiny.write(temporary_folder() / "head-repacked.gguf");
    const LoadedModel plain(temporary_folder() / "head-repacked.gguf", Repack::off);
    EXPECT_TRUE(HeadSubset::is_possible(*plain.weights));
    const LoadedModel repacked(temporary_folder() / "head-repacked.gguf", Repack::on);
    if (!is_repacked(repacked)) {
        GTEST_SKIP() << "no repacked layouts on this machine";
    }
    EXPECT_FALSE(HeadSubset::is_possible(*repacked.weights));
}

TEST(HeadSubset, CopiesARepackedTiedHeadFromTheEmbedding) {
    TinyGguf tiny("llama", {}, GGML_TYPE_Q4_0);
    tiny.remove_tensor("output.weight");
    tiny.write(temporary_folder() / "head-tied.gguf");
    const LoadedModel model(temporary_folder() / "head-tied.gguf", Repack::on);
    if (!is_repacked(model)) {
        GTEST_SKIP() << "no repacked layouts on this machine";
    }
    ASSERT_TRUE(HeadSubset::is_possible(*model.weights));
    HeadSubset subset(*model.weights, model.backend, {});
    subset.begin(Tokens{17});
    const ggml_tensor* embedding = model.weights->tensors().token_embd;
    const auto* row = static_cast<const char*>(subset.tensors().weight->data) +
                      (held_tokens(subset, model.config.n_vocab).size() - 1) * embedding->nb[1];
    EXPECT_EQ(std::memcmp(row, static_cast<const char*>(embedding->data) + 17 * embedding->nb[1],
                          embedding->nb[1]),
              0);
}

}  // namespace
}  // namespace knap::test::head_subset_test

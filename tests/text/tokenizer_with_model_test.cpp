// The tokenizer with a real vocabulary: byte-level BPE with 49152 tokens, in which some bytes have
// no token.
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "llama.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/default_model.h"
#include "text/chat_format.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace knap::tokenizer_with_model_test {
namespace {

using namespace std::string_literals;

class DefaultModelTokenizer : public ::testing::Test {
  protected:
    static void SetUpTestSuite() { tokenizer = Tokenizer::load(test::default_model()); }
    static void TearDownTestSuite() { tokenizer.reset(); }

    static std::string round_trip(const std::string& text) {
        return tokenizer->decode(tokenizer->encode(text, true, true));
    }

    inline static std::unique_ptr<Tokenizer> tokenizer;
};

TEST_F(DefaultModelTokenizer, KnowsTheModelsTokens) {
    EXPECT_EQ(tokenizer->n_vocab(), 49152);
    EXPECT_EQ(tokenizer->encode("Hello", true, false), tokenizer->encode("Hello", false, false))
        << "the model wants no token before a text";
    EXPECT_EQ(tokenizer->piece(2), "<|im_end|>");
    EXPECT_TRUE(tokenizer->is_end_of_generation(2));
    EXPECT_THAT(tokenizer->end_of_generation(), ::testing::IsSupersetOf({0, 2}));
}

TEST_F(DefaultModelTokenizer, EncodesValidTextAsLibllamaDoes) {
    llama_model_params params = llama_model_default_params();
    params.vocab_only = true;
    llama_model* model = llama_model_load_from_file(test::default_model().string().c_str(), params);
    ASSERT_NE(model, nullptr);
    for (const std::string& text :
         {"Hello, world!"s, ""s, " "s, "  two  spaces\n\n\ttab"s, "naïve café, 漢字, 😀 2024"s,
          "<|im_start|>user\nHi<|im_end|>\n"s, "it's 12345 o'clock"s}) {
        for (bool parse_special : {false, true}) {
            std::vector<Token> expected(text.size() + 8);
            const int n_tokens = llama_tokenize(
                llama_model_get_vocab(model), text.data(), static_cast<int>(text.size()),
                expected.data(), static_cast<int>(expected.size()), true, parse_special);
            ASSERT_GE(n_tokens, 0);
            expected.resize(static_cast<std::size_t>(n_tokens));
            EXPECT_EQ(tokenizer->encode(text, true, parse_special), expected) << text;
            EXPECT_EQ(tokenizer->decode(expected), text);
        }
    }
    llama_model_free(model);
}

TEST_F(DefaultModelTokenizer, KeepsAPromptThatEndsInHalfACharacter) {
    for (const std::string& character : {"é"s, "€"s, "😀"s}) {
        for (std::size_t n_bytes = 1; n_bytes < character.size(); ++n_bytes) {
            const std::string text = "Price: " + character.substr(0, n_bytes);
            EXPECT_EQ(round_trip(text), text);
        }
    }
}

TEST_F(DefaultModelTokenizer, BytesWithoutATokenBecomeReplacements) {
    // 0xF7 and 0xFF have no token here; the three bytes of the surrogate do.
    EXPECT_EQ(round_trip("a\xF7\xBF z"), "a" + std::string(kReplacementCharacter) + "\xBF z");
    EXPECT_EQ(round_trip("a\xFFz"), "a" + std::string(kReplacementCharacter) + "z");
    EXPECT_EQ(round_trip("a\xED\xA0\x80z"), "a\xED\xA0\x80z");
}

TEST_F(DefaultModelTokenizer, AcceptsAnyBytes) {
    std::mt19937 random(2);
    for (int round = 0; round < 100; ++round) {
        std::string bytes(random() % 200, '\0');
        for (char& byte : bytes) {
            byte = static_cast<char>(random());
        }
        for (Token token : tokenizer->encode(bytes, true, true)) {
            ASSERT_GE(token, 0);
            ASSERT_LT(token, tokenizer->n_vocab());
        }
    }
}

TEST_F(DefaultModelTokenizer, ItsChatTemplateIsChatml) {
    const ChatFormat format(make_chat_format(*tokenizer, ""));
    const ChatPrompt prompt =
        format.render({.messages = {{"system", "Be brief."}, {"user", "Hi"}}});
    EXPECT_EQ(prompt.text,
              "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
              "<|im_start|>assistant\n");
    EXPECT_EQ(prompt.tokens, tokenizer->encode(prompt.text, true, true));
    EXPECT_EQ(prompt.tokens.front(), 1);
    EXPECT_EQ(format.parse(prompt, "Hello there. ", false).content, "Hello there. ");
}

}  // namespace
}  // namespace knap::tokenizer_with_model_test

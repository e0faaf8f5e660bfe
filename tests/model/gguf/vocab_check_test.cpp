#include "model/gguf/vocab_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "knap/types.h"

#include "model/gguf/gguf_file.h"
#include "support/tiny_gguf.h"
#include "support/tiny_model.h"

namespace knap::test::vocab_check_test {
namespace {

using ::testing::HasSubstr;

std::string refusal_of(const TinyGguf& tiny) {
    const std::filesystem::path path = temporary_folder() / "vocabulary.gguf";
    tiny.write(path);
    try {
        check_vocabulary(GgufFile::open(path));
    } catch (const Error& error) {
        return error.what();
    }
    return "accepted";
}

void set_tokens(TinyGguf& tiny, std::vector<const char*> tokens) {
    gguf_set_arr_str(tiny.metadata(), "tokenizer.ggml.tokens", tokens.data(), tokens.size());
    gguf_remove_key(tiny.metadata(), "tokenizer.ggml.token_type");
}

TEST(VocabularyCheck, AcceptsAGoodVocabulary) {
    EXPECT_EQ(refusal_of(TinyGguf()), "accepted");
}

TEST(VocabularyCheck, NeedsATokenizerOfAKnownKind) {
    TinyGguf tiny;
    for (const char* model : {"none", "no_vocab", "rwkv", "bert", "my\nown"}) {
        gguf_set_val_str(tiny.metadata(), "tokenizer.ggml.model", model);
        EXPECT_THAT(refusal_of(tiny),
                    HasSubstr("key tokenizer.ggml.model: expected one of llama, gpt2, found '"));
    }
    gguf_remove_key(tiny.metadata(), "tokenizer.ggml.model");
    EXPECT_THAT(refusal_of(tiny), HasSubstr("found no such key"));
}

TEST(VocabularyCheck, NeedsDistinctTokens) {
    TinyGguf twice;
    set_tokens(twice, {"a", "b", "a", "d"});
    EXPECT_THAT(refusal_of(twice), HasSubstr("expected distinct tokens, found 'a' twice"));
    TinyGguf empty;
    set_tokens(empty, {"[EMPTY_1]", ""});
    EXPECT_THAT(refusal_of(empty), HasSubstr("found '[EMPTY_1]' twice"));
    TinyGguf none;
    set_tokens(none, {});
    EXPECT_THAT(refusal_of(none),
                HasSubstr("tokenizer.ggml.tokens: expected the tokens, found none"));
    gguf_remove_key(none.metadata(), "tokenizer.ggml.tokens");
    EXPECT_THAT(refusal_of(none),
                HasSubstr("tokenizer.ggml.tokens: expected the tokens, found none"));
}

TEST(VocabularyCheck, NeedsAValueForEveryToken) {
    TinyGguf tiny;
    const float scores[] = {1.0f, 2.0f};
    gguf_set_arr_data(tiny.metadata(), "tokenizer.ggml.scores", GGUF_TYPE_FLOAT32, scores, 2);
    EXPECT_THAT(refusal_of(tiny),
                HasSubstr("tokenizer.ggml.scores: expected a value for each of 24 "
                          "tokens, found 2"));
    const double wide[] = {1.0};
    gguf_set_arr_data(tiny.metadata(), "tokenizer.ggml.scores", GGUF_TYPE_FLOAT64, wide, 1);
    EXPECT_THAT(refusal_of(tiny), HasSubstr("expected an array of f32, found an array of f64"));
}

TEST(VocabularyCheck, BytePairsNeedMerges) {
    TinyGguf tiny;
    gguf_remove_key(tiny.metadata(), "tokenizer.ggml.merges");
    EXPECT_THAT(refusal_of(tiny), HasSubstr("tokenizer.ggml.merges: expected"));
    gguf_set_val_str(tiny.metadata(), "tokenizer.ggml.model", "llama");
    EXPECT_EQ(refusal_of(tiny), "accepted");
}

TEST(VocabularyCheck, SpecialTokensAreU32) {
    TinyGguf tiny;
    gguf_set_val_i32(tiny.metadata(), "tokenizer.ggml.eot_token_id", 3);
    EXPECT_THAT(refusal_of(tiny),
                HasSubstr("tokenizer.ggml.eot_token_id: expected u32, found i32"));
}

// libllama falls back to a default id, and aborts when it needs one that does not exist either.
TEST(VocabularyCheck, FirstAndLastTokenMustExist) {
    TinyGguf tiny;
    gguf_set_val_u32(tiny.metadata(), "tokenizer.ggml.padding_token_id", 1000);
    gguf_set_val_u32(tiny.metadata(), "tokenizer.ggml.bos_token_id", 1000);  // 11 is used instead
    EXPECT_EQ(refusal_of(tiny), "accepted");
    set_tokens(tiny, {"a", "b", "c"});
    EXPECT_THAT(refusal_of(tiny),
                HasSubstr("tokenizer.ggml.bos_token_id: expected an id below 3, found none"));
}

TEST(VocabularyCheck, SwitchesAreBools) {
    TinyGguf tiny;
    gguf_set_val_u32(tiny.metadata(), "tokenizer.ggml.add_eos_token", 1);
    EXPECT_THAT(refusal_of(tiny),
                HasSubstr("tokenizer.ggml.add_eos_token: expected a bool, found u32"));
}

TEST(VocabularyCheck, RefusesAPreTokenizerThatMakesLibllamaAbort) {
    TinyGguf tiny;
    gguf_set_val_str(tiny.metadata(), "tokenizer.ggml.pre", "whitespace");
    EXPECT_THAT(refusal_of(tiny), HasSubstr("tokenizer.ggml.pre: expected"));
}

}  // namespace
}  // namespace knap::test::vocab_check_test

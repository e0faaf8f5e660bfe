#include "text/tokenizer.h"

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "text/tiny_vocabulary.h"

namespace knap::tokenizer_test {
namespace {

using namespace std::string_literals;
using test::bpe_vocabulary;
using test::spm_vocabulary;
using test::TinyVocabulary;
using test::VocabularyFile;
using testing::ElementsAre;

std::unique_ptr<Tokenizer> load(const TinyVocabulary& vocabulary) {
    return Tokenizer::load(VocabularyFile(vocabulary).path());
}

constexpr Token bpe_byte(int byte) {
    return 2 + byte;
}

constexpr Token spm_byte(int byte) {
    return 3 + byte;
}

std::string every_byte() {
    std::string bytes;
    for (int byte = 0; byte < 256; ++byte) {
        bytes += static_cast<char>(byte);
    }
    return bytes;
}

TEST(Tokenizer, BpeMergesAndDecodes) {
    const auto tokenizer = load(bpe_vocabulary());
    const auto tokens = tokenizer->encode("hey", false, false);
    EXPECT_THAT(tokens, ElementsAre(bpe_byte(256), bpe_byte('y')));
    EXPECT_EQ(tokenizer->decode(tokens), "hey");
    EXPECT_EQ(tokenizer->n_vocab(), 259);
}

TEST(Tokenizer, SpmMergesAndDecodes) {
    const auto tokenizer = load(spm_vocabulary());
    const auto tokens = tokenizer->encode("he", false, false);
    ASSERT_EQ(tokens.size(), 1u);
    EXPECT_EQ(tokenizer->piece(tokens[0]), " he");
}

TEST(Tokenizer, BpeKeepsBytesThatAreNotUtf8) {
    const auto tokenizer = load(bpe_vocabulary());
    EXPECT_THAT(tokenizer->encode("a\xC3", false, false),
                ElementsAre(bpe_byte('a'), bpe_byte(0xC3)));
    // Half a character, a surrogate, an overlong form, a code point above U+10FFFF, every byte,
    // mixed text.
    for (const std::string& text : {"caf\xC3"s, "x\xED\xA0\x80y"s, "\xC0\x80"s, "\xF7\xBF\xBF\xBF"s,
                                    every_byte(), "he \xFF he€\xE2\x82 he\xF0\x9F\x98"s}) {
        EXPECT_EQ(tokenizer->decode(tokenizer->encode(text, false, true)), text);
    }
}

TEST(Tokenizer, SpmKeepsBytesThatAreNotUtf8) {
    const auto tokenizer = load(spm_vocabulary());
    for (const std::string& text : {"caf\xC3"s, "x\xED\xA0\x80y"s, "\xC0\x80"s, "\xF7\xBF\xBF\xBF"s,
                                    every_byte(), "he \xFF he€\xE2\x82 he\xF0\x9F\x98"s}) {
        const std::string decoded = tokenizer->decode(tokenizer->encode(text, false, true));
        // The vocabulary adds a leading space before text, but not before other bytes.
        EXPECT_EQ(decoded, decoded[0] == ' ' ? " " + text : text);
    }
}

TEST(Tokenizer, SpmPutsNoSpaceAfterAByteThatIsNotUtf8) {
    const auto tokenizer = load(spm_vocabulary());
    const Token he = spm_byte(256) + 3;
    EXPECT_EQ(tokenizer->piece(he), "he");
    EXPECT_THAT(tokenizer->encode("he\xFFhe", false, false),
                ElementsAre(he + 1, spm_byte(0xFF), he));
    EXPECT_THAT(tokenizer->encode("\xFF he", false, false), ElementsAre(spm_byte(0xFF), he + 1));
}

TEST(Tokenizer, AByteWithoutTokenBecomesTheReplacementCharacter) {
    const auto tokenizer = load(bpe_vocabulary(/*left_out=*/0xFF));
    EXPECT_EQ(tokenizer->decode(tokenizer->encode("a\xFF\xC3", false, false)), "a\xEF\xBF\xBD\xC3");
}

TEST(Tokenizer, ATextThatSpmCannotExpressIsAnError) {
    TinyVocabulary vocabulary = spm_vocabulary();
    vocabulary.tokens[spm_byte('q')] = "no byte";
    vocabulary.types[spm_byte('q')] = test::normal;
    const auto tokenizer = load(vocabulary);
    EXPECT_EQ(tokenizer->decode(tokenizer->encode("p", false, false)), " p");
    EXPECT_THROW(tokenizer->encode("q", false, false), Error);
}

TEST(Tokenizer, AddsSpecialTokensWhenTheModelNeedsThem) {
    TinyVocabulary vocabulary = bpe_vocabulary();
    EXPECT_THAT(load(vocabulary)->encode("y", true, false), ElementsAre(bpe_byte('y')));

    vocabulary.adds_bos = true;
    vocabulary.adds_eos = true;
    const auto tokenizer = load(vocabulary);
    EXPECT_THAT(tokenizer->encode("y", true, false), ElementsAre(0, bpe_byte('y'), 1));
    EXPECT_THAT(tokenizer->encode("\xFFy", true, false),
                ElementsAre(0, bpe_byte(0xFF), bpe_byte('y'), 1));
    EXPECT_THAT(tokenizer->encode("", true, false), ElementsAre(0, 1));
    EXPECT_THAT(tokenizer->encode("y", false, false), ElementsAre(bpe_byte('y')));
}

TEST(Tokenizer, ReadsSpelledOutControlTokensOnlyWhenAsked) {
    const auto tokenizer = load(bpe_vocabulary());
    EXPECT_THAT(tokenizer->encode("</s>", false, true), ElementsAre(1));
    EXPECT_EQ(tokenizer->encode("</s>", false, false).size(), 4u);
    EXPECT_THAT(tokenizer->encode("\xFF</s>", false, true), ElementsAre(bpe_byte(0xFF), 1));
}

TEST(Tokenizer, SpellsOutControlTokens) {
    const auto tokenizer = load(bpe_vocabulary());
    EXPECT_EQ(tokenizer->piece(1), "</s>");
    EXPECT_EQ(tokenizer->decode(std::vector<Token>{0, bpe_byte('y'), 1}), "<s>y</s>");
}

TEST(Tokenizer, LongPiecesAreWhole) {
    TinyVocabulary vocabulary = bpe_vocabulary();
    const std::string longest(1000, 'x');
    vocabulary.add(longest, test::normal);
    vocabulary.add("<z>", test::control);
    const auto tokenizer = load(vocabulary);
    EXPECT_EQ(tokenizer->piece(259), longest);
    EXPECT_EQ(tokenizer->piece(260), "<z>");
}

TEST(Tokenizer, TokensOutOfRangeThrow) {
    const auto tokenizer = load(bpe_vocabulary());
    EXPECT_NO_THROW(tokenizer->piece(258));
    EXPECT_THROW(tokenizer->piece(-1), Error);
    EXPECT_THROW(tokenizer->piece(259), Error);
    EXPECT_THROW(tokenizer->decode(std::vector<Token>{0, 1 << 30}), Error);
    EXPECT_FALSE(tokenizer->is_end_of_generation(-1));
}

TEST(Tokenizer, KnowsEveryEndOfGeneration) {
    TinyVocabulary vocabulary = bpe_vocabulary();
    vocabulary.add("<|im_end|>", test::control);
    const auto tokenizer = load(vocabulary);
    EXPECT_THAT(tokenizer->end_of_generation(), ElementsAre(1, 259));
    EXPECT_TRUE(tokenizer->is_end_of_generation(259));
    EXPECT_FALSE(tokenizer->is_end_of_generation(0));
}

TEST(Tokenizer, ReturnsTheModelsChatTemplate) {
    TinyVocabulary vocabulary = bpe_vocabulary();
    EXPECT_EQ(load(vocabulary)->chat_template(), "");
    vocabulary.chat_template = "{{ messages }}";
    EXPECT_EQ(load(vocabulary)->chat_template(), "{{ messages }}");
}

TEST(Tokenizer, AFileWithoutVocabularyIsAnError) {
    EXPECT_THROW(load({.model = "no_vocab"}), Error);
}

TEST(Tokenizer, AMissingFileIsAnError) {
    EXPECT_THROW(Tokenizer::load("no/such/file.gguf"), Error);
}

}  // namespace
}  // namespace knap::tokenizer_test

#include "text/grammar/grammar_walk.h"

#include <memory>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "knap/chat.h"

#include "text/grammar/grammar.h"
#include "text/grammar/grammar_parser.h"
#include "text/tiny_vocabulary.h"

namespace knap::grammar_walk_test {
namespace {

GrammarWalk walk(std::string_view grammar) {
    return GrammarWalk(parse_grammar(grammar));
}

std::string likely(std::string_view grammar, std::string_view text, std::size_t max_bytes = 99) {
    GrammarWalk place = walk(grammar);
    place.advance(text);
    return place.likely_text(max_bytes);
}

TEST(GrammarWalk, GuessesWhatIsWithoutChoice) {
    EXPECT_EQ(likely(R"(root ::= "abc" [xy] "d")", ""), "abc");
    EXPECT_EQ(likely(R"(root ::= "abc" [xy] "d")", "", 2), "ab");
    EXPECT_EQ(likely(R"(root ::= "abc" [xy] "d")", "abc"), "");
    EXPECT_EQ(likely(R"(root ::= "abc" [xy] "d")", "abcy"), "d");
    EXPECT_EQ(likely(R"(root ::= "true" | "try")", ""), "tr");
    EXPECT_EQ(likely(R"(root ::= "true" | "try")", "tru"), "e");
    EXPECT_EQ(likely(R"(root ::= "abc"?)", ""), "") << "the text may end";
}

TEST(GrammarWalk, ReadsEveryNotation) {
    EXPECT_EQ(likely("root ::= \"a\" b # comment\n\nb ::= (\"c\"\n | \"c\") \"d\"", ""), "acd");
    EXPECT_EQ(likely(R"(root ::= "ab"{2} [q])", ""), "ababq");
    EXPECT_EQ(likely(R"(root ::= "ab"{1,2} "x")", "ab"), "");
    EXPECT_EQ(likely(R"(root ::= "ab"{1,2} "x")", "abab"), "x");
    EXPECT_EQ(likely(R"(root ::= "ab"{2,} "x")", "a"), "bab");
    EXPECT_EQ(likely(R"(root ::= "a"+ "b"* "c")", "aab"), "");
    EXPECT_EQ(likely(R"(root ::= [^a-z] "1")", "A"), "1");
    EXPECT_EQ(likely(R"(root ::= [^a-z] "1")", "a"), "") << "it does not fit";
    EXPECT_EQ(likely(R"(root ::= . "1")", "\xc3\xa4"), "1");
    EXPECT_EQ(likely(R"(root ::= "\x41\u00e4\U0001F600\"\\")", ""),
              "A\xc3\xa4\xf0\x9f\x98\x80\"\\");
    EXPECT_EQ(likely(R"(root ::= "[" root "]" | "x" "y")", "[[x"), "y]]");
}

// Ways that lead to the same place are told apart only there.
TEST(GrammarWalk, GivesUpWhereThereAreTooManyWays) {
    std::string grammar = "root ::= [xy]";
    for (int i = 0; i < 8; ++i) {
        grammar += R"( ("a"?){0,9})";
    }
    EXPECT_EQ(likely(grammar + R"( "b" "cd")", "xb"), "");
    EXPECT_EQ(likely(R"(root ::= [xy] ("a"?){0,9} "b" "cd")", "xb"), "cd");
}

TEST(GrammarWalk, GivesUpWhereATextNestsDeeply) {
    GrammarWalk place = walk(R"(root ::= "[" root "]" | "xy")");
    place.advance(std::string(500, '[') + "x");
    EXPECT_EQ(place.likely_text(3), "y]]");
    GrammarWalk deep = walk(R"(root ::= "[" root "]" | "xy")");
    deep.advance(std::string(1'000'000, '[') + "x");
    EXPECT_EQ(deep.likely_text(3), "");
}

TEST(GrammarWalk, ACharacterMayComeInParts) {
    GrammarWalk place = walk(R"(root ::= "\u00e4" "bc")");
    place.advance("\xc3");
    EXPECT_EQ(place.likely_text(99), "");
    place.advance("\xa4");
    EXPECT_EQ(place.likely_text(99), "bc");
    EXPECT_EQ(likely(R"(root ::= "a\u00e4")", "", 2), "a") << "whole characters";
}

constexpr const char* kPeople = R"({"type": "object", "additionalProperties": false,
    "required": ["people"], "properties": {"people": {"type": "array", "minItems": 3, "maxItems": 4,
    "items": {"type": "object", "additionalProperties": false, "required": ["name", "age"],
    "properties": {"name": {"type": "string", "maxLength": 9}, "age": {"type": "integer"}}}}}})";

TEST(GrammarWalk, LaysJsonOutAsTheAnswerDoes) {
    const std::string grammar = json_schema_to_gbnf(kPeople);
    GrammarWalk place = walk(grammar);
    EXPECT_EQ(place.likely_text(99), "{\n  \"people\": [") << "as JSON is mostly written";
    place.advance("{\n \"people\": [\n  {");
    EXPECT_EQ(place.likely_text(99), "\n   \"name\": \"") << "one blank for each bracket";
    place.advance("\"name\": \"A\"");
    place.advance(",");
    EXPECT_EQ(place.likely_text(99), "\n   \"age\":") << "what a number begins with is open";
    place.advance(" \"age\": 1},");
    EXPECT_EQ(place.likely_text(99), "\n  {\"name\": \"") << "as in the first item";
    place.advance("\n  {\"name\": \"B\",");
    EXPECT_EQ(place.likely_text(99), " \"age\":");
    EXPECT_EQ(place.likely_text(5), " \"age");
}

TEST(GrammarWalk, WhiteSpaceThatHasBegunIsContinued) {
    const std::string grammar = json_schema_to_gbnf(kPeople);
    EXPECT_EQ(likely(grammar, "{\n"), "  \"people\": [\n    {");
    EXPECT_EQ(likely(grammar, "{\n "), " \"people\": [\n    {");
    EXPECT_EQ(likely(grammar, "{\n\t"), "\"people\": [") << "another layout";
}

TEST(WhiteSpace, GuessesThatFailLoseTheirProbability) {
    const Gap gap{.place = 1, .before = U',', .depth = 1};
    WhiteSpace changing;
    WhiteSpace steady;
    for (std::size_t i = 1; i < 12; ++i) {
        changing.learn(gap, U'"', std::string(i, ' '));
        steady.learn(gap, U'"', "\n   ");
    }
    EXPECT_LT(changing.guess(gap, U'"').probability, 0.4);
    EXPECT_GT(steady.guess(gap, U'"').probability, 0.9);
    const Gap deeper{.place = 2, .before = U',', .depth = 2};
    EXPECT_EQ(steady.guess(deeper, U'"').text, "\n      ") << "three blanks for each bracket";
    EXPECT_EQ(steady.guess({.place = 3, .before = U':', .depth = 2}, U'"').text, " ");
}

// What is guessed fits: libllama agrees at every byte of some answers.
TEST(GrammarWalk, GuessesFit) {
    const auto tokenizer = Tokenizer::load(test::VocabularyFile(test::bpe_vocabulary()).path());
    const auto token = [&](char byte) {
        return *tokenizer->byte_token(static_cast<unsigned char>(byte));
    };
    const std::string grammar = json_schema_to_gbnf(kPeople);
    for (
        const std::string_view answer :
        {R"({"people": [{"name": "A","age": 1}, {"name":"", "age": -20},{"name":"\u00e4","age":0}]})",
         "{\n  \"people\": [\n    {\n      \"name\": \"Bo\",\n      \"age\": 7\n    },\n    {\n    "
         "  \"name\": "
         "\"Cy\",\n      \"age\": 8\n    },\n    {\n      \"name\": \"D\",\n      \"age\": 9\n    "
         "}\n  ]\n}"}) {
        GrammarState state(*tokenizer, {.text = grammar});
        std::size_t n_guessed = 0;
        for (const char byte : answer) {
            GrammarState ahead(state);
            for (const char guessed : state.forced_text(64)) {
                ASSERT_TRUE(ahead.accept(token(guessed))) << state.forced_text(64);
                ++n_guessed;
            }
            ASSERT_TRUE(state.accept(token(byte)));
        }
        EXPECT_GT(n_guessed, 100u);
    }
}

}  // namespace
}  // namespace knap::grammar_walk_test

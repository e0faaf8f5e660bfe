#include "text/grammar/grammar.h"

#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/text.h"
#include "text/grammar/awaited_text.h"
#include "text/grammar/grammar_parser.h"
#include "text/tiny_vocabulary.h"

namespace knap::grammar_test {
namespace {

using test::bpe_vocabulary;
using test::spm_vocabulary;
using test::TinyVocabulary;
using test::VocabularyFile;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::unique_ptr<Tokenizer> load(const TinyVocabulary& vocabulary) {
    return Tokenizer::load(VocabularyFile(vocabulary).path());
}

// A token per byte, and some of several bytes.
TinyVocabulary rich_vocabulary() {
    TinyVocabulary vocabulary = bpe_vocabulary();
    vocabulary.add("<call>", test::control);
    vocabulary.add(">{", test::normal);
    vocabulary.add(">x", test::normal);
    for (int i = 0; i < 4000; ++i) {  // so that a whole vocabulary is asked about by bytes
        vocabulary.add(concat("q", i), test::normal);
    }
    return vocabulary;
}

class GrammarTest : public ::testing::Test {
  protected:
    Token token(std::string_view piece) const {
        for (Token one = 0; one < tokenizer_->n_vocab(); ++one) {
            if (tokenizer_->piece(one) == piece) {
                return one;
            }
        }
        ADD_FAILURE() << "no token " << piece;
        return 0;
    }

    static bool fits(const GrammarState& state, Token token) {
        std::vector<Token> one{token};
        state.keep_fitting(one);
        return !one.empty();
    }
    bool fits(const GrammarState& state, std::string_view piece) const {
        return fits(state, token(piece));
    }

    // Every token that fits, spelled out.
    std::vector<std::string> fitting(const GrammarState& state) const {
        std::vector<Token> tokens;
        for (Token one = 0; one < tokenizer_->n_vocab(); ++one) {
            tokens.push_back(one);
        }
        state.keep_fitting(tokens);
        std::vector<std::string> pieces;
        for (const Token one : tokens) {
            EXPECT_TRUE(fits(state, one)) << "alone as among others";
            pieces.emplace_back(tokenizer_->piece(one));
        }
        return pieces;
    }

    bool accept(GrammarState& state, std::string_view text) const {
        for (const char byte : text) {
            if (!state.accept(token(std::string(1, byte)))) {
                return false;
            }
        }
        return true;
    }

    GrammarState start(const Grammar& grammar) const { return {*tokenizer_, grammar}; }

    std::string error_of(const Grammar& grammar) const {
        try {
            start(grammar);
        } catch (const Error& error) {
            return error.what();
        }
        return "";
    }

    std::unique_ptr<Tokenizer> tokenizer_ = load(rich_vocabulary());
    Token end_ = 1;
};

TEST_F(GrammarTest, AllowsWhatTheRulesAllow) {
    GrammarState state = start({.text = R"(root ::= "he" [xy] "q1" "0"?)"});
    EXPECT_THAT(fitting(state), ElementsAre("h", "he"));
    EXPECT_TRUE(state.accept(token("he")));
    EXPECT_THAT(fitting(state), ElementsAre("x", "y"));
    EXPECT_TRUE(state.accept(token("y")));
    EXPECT_THAT(fitting(state), ElementsAre("q", "q1", "q10"));
    EXPECT_TRUE(state.accept(token("q1")));
    EXPECT_THAT(fitting(state), ElementsAre("</s>", "0"));
    EXPECT_TRUE(state.accept(end_));
    EXPECT_THAT(fitting(state), IsEmpty());
}

TEST_F(GrammarTest, RefusesWhatDoesNotFit) {
    EXPECT_FALSE(start({.text = R"(root ::= "he")"}).accept(token("x")));
    EXPECT_FALSE(start({.text = R"(root ::= "he")"}).accept(end_)) << "too early";
    GrammarState state = start({.text = R"(root ::= "h"?)"});
    EXPECT_TRUE(state.accept(end_));
    EXPECT_FALSE(state.accept(end_)) << "after the end";
    EXPECT_FALSE(state.accept(token("h")));
}

// libllama aborts the process on this.
TEST_F(GrammarTest, AnEndThatComesTooEarlyNeverReachesLibllama) {
    GrammarSampler sampler(*tokenizer_, *parse_grammar(R"(root ::= "he")"), {}, /*is_lazy=*/false);
    EXPECT_FALSE(sampler.accept(end_));
}

TEST_F(GrammarTest, CopiesGoTheirOwnWay) {
    GrammarState state = start({.text = R"(root ::= ("a" | "b") [0-9])"});
    GrammarState copy(state);
    EXPECT_TRUE(copy.accept(token("a")));
    EXPECT_TRUE(fits(copy, "7"));
    EXPECT_FALSE(fits(state, "7"));
    EXPECT_TRUE(state.accept(token("b")));
}

TEST_F(GrammarTest, NamedTokensAreFoundWhateverTheirBytes) {
    GrammarState state = start({.text = R"(root ::= "a" <call> "b")"});
    EXPECT_TRUE(state.accept(token("a")));
    EXPECT_THAT(fitting(state), ElementsAre("<call>"));
    EXPECT_TRUE(state.accept(token("<call>")));
    EXPECT_THAT(fitting(state), ElementsAre("b"));
}

// fitting() compares the answers about many tokens with those about each.
TEST_F(GrammarTest, ManyTokensAreAskedAboutByTheirBytes) {
    EXPECT_THAT(
        fitting(start({.text = R"(root ::= "q" ("12" [34] | "2" | "399" [0-9]{2}))"})),
        ElementsAre("q", "q1", "q2", "q3", "q12", "q39", "q123", "q124", "q399", "q3990", "q3991",
                    "q3992", "q3993", "q3994", "q3995", "q3996", "q3997", "q3998", "q3999"));
    EXPECT_EQ(fitting(start({.text = R"(root ::= "q" [0-9]{3})"})).size(), 1001u);
    EXPECT_EQ(fitting(start({.text = R"(root ::= "q" [0-9]+ | "x")"})).size(), 4002u);
}

TEST_F(GrammarTest, CharactersMayBeSplitBetweenTokens) {
    GrammarState state = start({.text = R"(root ::= "\u00e4" [\u00e0-\u00ff])"});
    EXPECT_EQ(state.forced_text(99), "\xc3\xa4");
    EXPECT_TRUE(accept(state, "\xc3\xa4\xc3\xa5"));
    EXPECT_TRUE(fits(state, end_));
}

TEST_F(GrammarTest, CharactersInPartsAreExcludedOneByOne) {
    GrammarState state = start({.text = R"(root ::= [^\u00e4]{3})"});
    EXPECT_TRUE(fits(state, "\xc3"));
    EXPECT_TRUE(accept(state, "\xc3\xa5"));
    EXPECT_TRUE(accept(state, "\xed\x9f\xbf")) << "next to the surrogates";
    EXPECT_FALSE(accept(state, "\xc3\xa4"));
    EXPECT_FALSE(
        accept(*std::make_unique<GrammarState>(start({.text = "root ::= .{3}"})), "\xed\xa0\x80"))
        << "no surrogates";
}

TEST_F(GrammarTest, TellsTheTextThatMustFollow) {
    GrammarState state =
        start({.text = R"(root ::= "{\"he\":" [0-9]+ ",\"y\":" ("true" | "try") "}")"});
    EXPECT_EQ(state.forced_text(99), "{\"he\":");
    EXPECT_EQ(state.forced_text(3), "{\"h");
    EXPECT_TRUE(accept(state, "{\"he\":"));
    EXPECT_EQ(state.forced_text(99), "") << "a digit";
    EXPECT_TRUE(accept(state, "1"));
    EXPECT_EQ(state.forced_text(99), "") << "a digit or a comma";
    EXPECT_TRUE(accept(state, ","));
    EXPECT_EQ(state.forced_text(99), "\"y\":tr");
    EXPECT_TRUE(accept(state, "\"y\":tru"));
    EXPECT_EQ(state.forced_text(99), "e}") << "up to the end";
    EXPECT_TRUE(accept(state, "e}"));
    EXPECT_EQ(state.forced_text(99), "");
}

TEST_F(GrammarTest, NothingMustFollowWhereTheTextMayEnd) {
    EXPECT_EQ(start({.text = R"(root ::= "abc"?)"}).forced_text(99), "");
}

TEST_F(GrammarTest, SpmVocabulariesSpellForcedTextToo) {
    const auto spm = load(spm_vocabulary());
    GrammarState state(*spm, {.text = R"(root ::= "he" [0-9])"});
    EXPECT_EQ(state.forced_text(99), "he");
    EXPECT_THAT(spm->encode_inside("he"), ElementsAre(262)) << "no space before it";
}

TEST_F(GrammarTest, LazyGrammarsWaitForAPattern) {
    const Grammar grammar{.text = R"(root ::= "<a>" [0-9]+ "</a>")",
                          .trigger_patterns = {R"([\s\S]*?(<a>)[\s\S]*)"}};
    GrammarState state = start(grammar);
    EXPECT_TRUE(fits(state, "x"));
    EXPECT_TRUE(fits(state, end_)) << "an answer without it is free";
    EXPECT_EQ(state.forced_text(99), "");
    EXPECT_TRUE(accept(state, "free text <a"));
    EXPECT_TRUE(fits(state, "x"));
    EXPECT_TRUE(state.accept(token(">")));
    EXPECT_FALSE(fits(state, "x"));
    EXPECT_FALSE(fits(state, end_));
    EXPECT_TRUE(accept(state, "12"));
    EXPECT_TRUE(fits(state, "<"));
}

TEST_F(GrammarTest, ATriggerInsideATokenMustFit) {
    const Grammar grammar{.text = R"(root ::= "<a>{" [0-9]+)",
                          .trigger_patterns = {R"([\s\S]*?(<a>)[\s\S]*)"}};
    GrammarState state = start(grammar);
    EXPECT_TRUE(accept(state, "<a"));
    GrammarState copy(state);
    EXPECT_TRUE(copy.accept(token(">{")));
    EXPECT_TRUE(fits(copy, "1"));
    EXPECT_FALSE(state.accept(token(">x")));
}

// Patterns without operators are found token by token.
TEST_F(GrammarTest, LazyGrammarsWaitForAText) {
    const Grammar grammar{.text = R"(root ::= ("<a.>" | "END") [0-9]+ "</a>")",
                          .trigger_patterns = {R"(<a\.>)", "END"}};
    for (const std::string_view start_text :
         {"free text <a.>", "<a.>", "<a<a.>", "EEND", "<a>END"}) {
        GrammarState state = start(grammar);
        EXPECT_TRUE(fits(state, end_)) << "an answer without it is free";
        EXPECT_EQ(state.forced_text(99), "");
        EXPECT_TRUE(accept(state, start_text)) << start_text;
        EXPECT_FALSE(fits(state, "x")) << start_text;
        EXPECT_FALSE(fits(state, end_));
        EXPECT_TRUE(accept(state, "12<"));
        EXPECT_EQ(state.forced_text(99), "/a>");
    }
}

TEST_F(GrammarTest, ATokenThatTriggersAGrammarMustFitIt) {
    const Grammar grammar{.text = R"(root ::= "<a>{" [0-9]+)", .trigger_patterns = {"<a>"}};
    GrammarState state = start(grammar);
    EXPECT_TRUE(fits(state, ">x")) << "no trigger ends here";
    EXPECT_TRUE(accept(state, "so: <a"));
    EXPECT_FALSE(fits(state, ">x"));
    EXPECT_TRUE(fits(state, ">"));
    EXPECT_TRUE(fits(state, ">{"));
    EXPECT_EQ(fitting(state).size(), static_cast<std::size_t>(tokenizer_->n_vocab()) - 1);
    EXPECT_FALSE(GrammarState(state).accept(token(">x")));
    EXPECT_TRUE(state.accept(token(">{")));
    EXPECT_TRUE(accept(state, "1"));
    EXPECT_FALSE(fits(state, "x"));
}

// A grammar that names the token of its trigger must see that token, not its text.
TEST_F(GrammarTest, ATriggerIsFedAsTheTokensThatSpelledIt) {
    const Grammar grammar{.text = R"(root ::= <call> [0-9])", .trigger_patterns = {"<call>"}};
    GrammarState state = start(grammar);
    EXPECT_TRUE(accept(state, "abc"));
    EXPECT_TRUE(state.accept(token("<call>")));
    EXPECT_TRUE(fits(state, "7"));
    EXPECT_FALSE(fits(state, "x"));
    const Grammar spread{
        .text = concat("root ::= <[", token("he"), "]> <[", token("y"), "]> [0-9]"),
        .trigger_patterns = {"hey"}};
    GrammarState other = start(spread);
    EXPECT_TRUE(other.accept(token("he")));
    EXPECT_TRUE(other.accept(token("y")));
    EXPECT_TRUE(fits(other, "7"));
}

TEST_F(GrammarTest, ATriggerMayFollowAStart) {
    const Grammar grammar{
        .text = R"(root ::= "<a>" [0-9])", .trigger_patterns = {"<a>"}, .starts_after = {"</t>"}};
    GrammarState state = start(grammar);
    EXPECT_TRUE(accept(state, "<a>x </t> free <a>"));
    EXPECT_FALSE(fits(state, "x"));
    EXPECT_TRUE(fits(state, "7"));
}

TEST_F(GrammarTest, LazyGrammarsWaitForAToken) {
    GrammarState state =
        start({.text = R"(root ::= "<call>" [0-9])", .trigger_tokens = {token("<call>")}});
    EXPECT_TRUE(accept(state, "a < b "));
    EXPECT_TRUE(fits(state, "x"));
    EXPECT_TRUE(state.accept(token("<call>")));
    EXPECT_FALSE(fits(state, "x"));
    EXPECT_TRUE(fits(state, "7"));
}

TEST_F(GrammarTest, AppliesAfterTheFirstOfItsStarts) {
    const Grammar grammar{.text = R"(root ::= "{" [0-9] "}")", .starts_after = {"</t>", "END"}};
    for (const std::string_view start_text : {"I think </t>", "the END", "</</t>"}) {
        GrammarState state = start(grammar);
        EXPECT_EQ(state.forced_text(99), "");
        EXPECT_TRUE(fits(state, end_));
        EXPECT_TRUE(accept(state, start_text));
        EXPECT_FALSE(fits(state, "x")) << start_text;
        EXPECT_FALSE(fits(state, end_));
        EXPECT_EQ(state.forced_text(99), "{");
        EXPECT_TRUE(accept(state, "{5}"));
        EXPECT_TRUE(fits(state, end_));
    }
}

TEST_F(GrammarTest, TheRestOfATokenThatEndsAStartMustFit) {
    const Grammar grammar{.text = R"(root ::= "{" [0-9] "}")", .starts_after = {"</t>"}};
    GrammarState state = start(grammar);
    EXPECT_TRUE(fits(state, ">x")) << "no start ends here";
    EXPECT_TRUE(accept(state, "a </t"));
    EXPECT_FALSE(fits(state, ">x"));
    EXPECT_TRUE(fits(state, ">{"));
    EXPECT_TRUE(state.accept(token(">{")));
    EXPECT_FALSE(fits(state, "{"));
    EXPECT_TRUE(accept(state, "5}"));
}

TEST_F(GrammarTest, BeginsAfterWhatThePromptAlreadySays) {
    const GrammarState state =
        start({.text = R"(root ::= "ab" [0-9])", .prefix = {token("a"), token("b")}});
    EXPECT_TRUE(fits(state, "7"));
    EXPECT_FALSE(fits(state, "a"));
    EXPECT_THROW(start({.text = R"(root ::= "ab" [0-9])", .prefix = {token("b")}}), Error);
}

TEST_F(GrammarTest, BadGrammarsAreRefusedWithTheirFault) {
    EXPECT_THAT(error_of({.text = "root ::= )"}), HasSubstr("`.grammar`: expected"));
    EXPECT_THAT(error_of({.text = "root ::= <nothing>"}), HasSubstr("<nothing>"));
    EXPECT_THAT(error_of({.text = "root ::= \"a\"", .trigger_patterns = {"("}}),
                HasSubstr("regular expressions"));
    EXPECT_THAT(error_of({.text = "root ::= \"a\"", .trigger_tokens = {99999}}),
                HasSubstr("99999"));
    EXPECT_THAT(error_of({.text = "root ::= \"a\"", .starts_after = {""}}),
                HasSubstr("starts_after"));
}

// Of "a", from the start of a text of up to `most` of them.
std::vector<int> lengths_in(const GrammarState& start, Token a, Token end, int most) {
    std::vector<int> lengths;
    GrammarState state(start);
    for (int n = 0; n <= most; ++n) {
        std::vector<Token> one{end};
        state.keep_fitting(one);
        if (!one.empty()) {
            lengths.push_back(n);
        }
        if (!state.accept(a)) {
            break;
        }
    }
    return lengths;
}

TEST_F(GrammarTest, RepetitionsHaveExactlyTheirBounds) {
    for (const auto& [least, most] : {std::pair{0, 1},
                                      {3, 3},
                                      {0, 64},
                                      {0, 65},
                                      {64, 65},
                                      {31, 97},
                                      {1000, 1000},
                                      {1023, 1025},
                                      {5, 1056},
                                      {0, 2500},
                                      {2100, 2300}}) {
        SCOPED_TRACE(concat(least, " to ", most));
        std::vector<int> expected(static_cast<std::size_t>(most - least) + 1);
        std::iota(expected.begin(), expected.end(), least);
        const GrammarState state =
            start({.text = concat("root ::= \"a\"{", least, ",", most, "}")});
        EXPECT_EQ(lengths_in(state, token("a"), end_, most + 40), expected);
    }
    const GrammarState state = start({.text = "root ::= \"a\"{2070,}"});
    EXPECT_EQ(lengths_in(state, token("a"), end_, 2072), (std::vector{2070, 2071, 2072}));
}

TEST_F(GrammarTest, WhatMayBeEmptyMayBeRepeated) {
    for (const char* text : {R"(root ::= (e)* "x"
e ::= f
f ::= "a"? | "b")",
                             R"(root ::= e{0,99} "x"
e ::= "a"? "b"*)"}) {
        GrammarState state = start({.text = text});
        EXPECT_TRUE(fits(state, "x"));
        EXPECT_TRUE(accept(state, "aabab"));
        EXPECT_FALSE(fits(state, "c"));
        EXPECT_TRUE(accept(state, "x"));
        EXPECT_TRUE(fits(state, end_));
    }
}

// Copies, for drafts, take time by the number of rules.
TEST_F(GrammarTest, LargeRepetitionsAreFewRules) {
    EXPECT_LT(parse_grammar(R"(root ::= ("a" | "b" "c"){0,2000000000})")->n_rules(), 500u);
    const GrammarState state = start({.text = R"(root ::= ("a" [0-9]{0,3000} ","){3,4000000000})"});
    EXPECT_TRUE(fits(state, "a"));
}

TEST_F(GrammarTest, SaysNothingOnStandardErrorItself) {
    testing::internal::CaptureStderr();
    error_of({.text = "root ::= )"});
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(GrammarTest, HugeGrammarsAreRefusedBeforeTheyExhaustTheStack) {
    const std::string deep =
        concat("root ::= ", std::string(100000, '('), "\"a\"", std::string(100000, ')'));
    EXPECT_THAT(error_of({.text = deep}), HasSubstr("deep"));
    std::string chain = "root ::= r0\n";
    for (int i = 0; chain.size() + 30 < kMaxGrammarBytes; ++i) {
        chain += concat("r", i, "::=r", i + 1, "\n");
    }
    const std::size_t last = chain.rfind("::=r") + 3;
    std::string name = chain.substr(last);
    chain += concat(name.substr(0, name.size() - 1), "::=\"a\"\n");
    EXPECT_EQ(error_of({.text = chain}), "") << "the longest chain of rules";
    EXPECT_THAT(error_of({.text = concat(chain, std::string(1000, '#'))}), HasSubstr("bytes"));
    const std::string zero("root ::= \"a\"\0b", 14);
    EXPECT_THAT(error_of({.text = zero}), HasSubstr("zero bytes"));
}

TEST_F(GrammarTest, SeveralThreadsMayReadGrammars) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([this] {
            for (int n = 0; n < 20; ++n) {
                EXPECT_THAT(error_of({.text = "root ::= )"}), HasSubstr("line 1"));
                EXPECT_EQ(error_of({.text = "root ::= \"a\""}), "");
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
}

TEST(AwaitedText, PatternsWithoutOperatorsArePlainTexts) {
    EXPECT_EQ(plain_text_of("<tool_call>"), "<tool_call>");
    EXPECT_EQ(plain_text_of(R"(\[CALL\.\])"), "[CALL.]");
    for (const char* pattern : {"a*", "[ab]", R"(\s)", "a|b", "^a", "a\\"}) {
        EXPECT_EQ(plain_text_of(pattern), std::nullopt) << pattern;
    }
}

TEST(AwaitedText, KeepsTheTokensOfItsEnd) {
    RecentText recent;
    for (const Token token : {1, 2, 3}) {
        recent.append(token, "abc");
    }
    recent.keep_last(4);
    EXPECT_EQ(recent.text, "cabc");
    ASSERT_EQ(recent.parts.size(), 2u);
    EXPECT_EQ(recent.parts[0].token, 2);
    EXPECT_EQ(recent.parts[0].begin, -2);
    EXPECT_EQ(recent.parts[1].begin, 1);
    recent.keep_last(3);
    ASSERT_EQ(recent.parts.size(), 1u);
    EXPECT_EQ(recent.parts[0].begin, 0);
}

}  // namespace
}  // namespace knap::grammar_test

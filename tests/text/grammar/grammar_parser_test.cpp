#include "text/grammar/grammar_parser.h"

#include <array>
#include <string>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/text.h"

namespace knap::grammar_parser_test {
namespace {

using testing::HasSubstr;

std::string error_of(const std::string& grammar) {
    try {
        parse_grammar(grammar);
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

TEST(GrammarParser, FaultsHaveTheirLine) {
    for (const auto& [grammar, words] : {
             std::array<std::string, 2>{"root ::= \"a\"\nb ::= )\n",
                                        "the end of the line in line 2"},
             {"root ::= (\"a\"", "expected ) in line 1, found the end"},
             {"root ::= \"a", "a character in line 1, found the end"},
             {"root ::= [a", "a character in line 1, found the end"},
             {"root ::= []", "characters in line 1, found ']'"},
             {"root ::= [z-a] \"b\"", "characters of Unicode before this in line 1, found ' "},
             {"root ::= \"\\ud800\"", "characters of Unicode"},
             {"root ::= [\\U00110000-\\UFFFFFFFF]", "characters of Unicode"},
             {"root ::= \"\\q\"", "after a backslash in line 1"},
             {"root ::= \"\\x4\"", "hexadecimal digits in line 1"},
             {"root ::= \"\xff\"", "a character in line 1"},
             {"root ::= a\nb", "expected ::= in line 2, found the end"},
             {"::=", "a name in line 1"},
             {"root ::= *", "a name in line 1"},
             {"root ::= <think", "<name> in line 1"},
             {"root ::= !think", "<name> in line 1"},
             {"root ::= \"a\"{x}", "a number of repetitions"},
             {"root ::= \"a\"{4294967296}", "a number of repetitions"},
             {"root ::= \"a\"{3,2}", "from the least to the most in line 1, found '{3,2}'"},
             {"root ::= \"a\"\nroot ::= \"b\"", "one rule of a name in line 2"},
             {"root ::= missing", "a rule named 'missing'"},
             {"start ::= \"a\"", "a rule named 'root'"},
             {" ", "a rule named 'root'"},
         }) {
        EXPECT_THAT(error_of(grammar),
                    testing::AllOf(testing::StartsWith("`.grammar`: expected "), HasSubstr(words)))
            << grammar;
    }
}

TEST(GrammarParser, RulesAsTextSayTheSame) {
    EXPECT_EQ(
        parse_grammar("root ::= (\"a-\"? [^x-z\\]] . # comment\n) <think> b | \"\"\nb ::= !<[1]>")
            ->text(),
        R"(root::= r1 <think> r4|""
r1::= r3[\U00000000-\U0000005C\U0000005E-w\U0000007B-\U0000D7FF\U0000E000-\U0010FFFF][\U00000000-\U0000D7FF\U0000E000-\U0010FFFF]
r2::="a\U0000002D"
r3::= r2|""
r4::= !<[1]>
)");
}

TEST(CharacterSet, HasWhatIsACharacter) {
    const CharacterSet all({}, true);
    const CharacterSet most({{U'c', U'd'}, {U'a', U'b'}, {0xD000, 0xFFFFFFFF}}, true);
    const CharacterSet high({{0xD000, 0xFFFFFFFF}, {U'z', U'y'}}, false);
    for (const auto& [character, is_in_all, is_in_most, is_in_high] :
         {std::tuple{char32_t{0}, true, true, false},
          {U'`', true, true, false},
          {U'a', true, false, false},
          {U'd', true, false, false},
          {U'e', true, true, false},
          {U'z', true, true, false},
          {0xCFFF, true, true, false},
          {0xD7FF, true, false, true},
          {0xD800, false, false, false},
          {0xDFFF, false, false, false},
          {0xE000, true, false, true},
          {0x10FFFF, true, false, true},
          {0x110000, false, false, false}}) {
        EXPECT_EQ(all.contains(character), is_in_all) << static_cast<unsigned>(character);
        EXPECT_EQ(most.contains(character), is_in_most) << static_cast<unsigned>(character);
        EXPECT_EQ(high.contains(character), is_in_high) << static_cast<unsigned>(character);
    }
}

TEST(GrammarParser, TokensAreNamedOutsideOfLiterals) {
    EXPECT_TRUE(parse_grammar("root ::= <think> \"a\"")->names_tokens());
    EXPECT_TRUE(parse_grammar("root ::= !<[12]>")->names_tokens());
    EXPECT_FALSE(parse_grammar(R"(root ::= "<a\"<" [<\]<] # <x>)")->names_tokens());
}

// libllama takes hours for each of these, or all memory.
TEST(GrammarParser, GrammarsThatWouldNotCompileAreRefused) {
    for (const char* grammar : {
             "root ::= root \"a\"",
             "root ::= \"x\"? root \"a\"",
             "root ::= e root \"a\" | \"b\"\ne ::= f\nf ::= \"\" | \"x\"",
             "root ::= (\"a\"* \"b\"?)* root \"c\"",
             "root ::= a\na ::= b \"a\"\nb ::= a \"b\"",
         }) {
        EXPECT_THAT(error_of(grammar), HasSubstr("left recursion")) << grammar;
    }
    for (const char* grammar : {"root ::= \"a\" b\nb ::= b", "root ::= \"a\" b\nb ::= c\nc ::= b",
                                "root ::= \"a\" e\ne ::= f e\nf ::= g\ng ::= \"\""}) {
        EXPECT_THAT(error_of(grammar), HasSubstr("lead to a text")) << grammar;
    }
    EXPECT_EQ(error_of("root ::= \"a\" root"), "no error") << "until the answer is long enough";
    const auto chain = [](int n, const std::string& left, const std::string& right) {
        std::string grammar = "root ::= \"x\" r0\n";
        for (int i = 0; i < n; ++i) {
            grammar += concat("r", i, " ::= r", i + 1, left, " | r", i + 1, right, "\n");
        }
        return grammar + concat("r", n, " ::= \"a\"\n");
    };
    EXPECT_EQ(error_of(chain(10, " \"a\"", " \"b\"")), "no error");
    for (const std::string& grammar :
         {chain(60, " \"a\"", " \"b\""), chain(2000, "", ""), chain(20, "", " \"b\"")}) {
        EXPECT_THAT(error_of(grammar), HasSubstr("within a second")) << grammar.substr(0, 60);
    }
    std::string deep = "root ::= r0\n";
    for (int i = 0; i < 9000; ++i) {
        deep += concat("r", i, "::=r", i + 1, "\"a\"\n");
    }
    EXPECT_THAT(error_of(deep + "r9000::=\"a\""), HasSubstr("within a second"));
    std::string wide = "\"a\"";
    for (int i = 0; i < 20'000; ++i) {
        wide += "|\"a\"";
    }
    EXPECT_THAT(error_of("root ::= " + wide), HasSubstr("within a second"));
    EXPECT_THAT(error_of("root ::= \"x\" (" + wide + ")"), HasSubstr("within a second"));
    EXPECT_THAT(error_of("root ::= ((((\"a\"?){0,60}){0,60}){0,60}){0,60}"),
                HasSubstr("within a second"));
}

TEST(GrammarParser, RepetitionsThatAreTooManyRulesAreRefused) {
    std::string many = "root ::= \"x\"";
    for (int i = 0; i < 15'000; ++i) {
        many += " \"ab\"{0,4000}";
    }
    EXPECT_THAT(error_of(many), HasSubstr("elements"));
}

}  // namespace
}  // namespace knap::grammar_parser_test

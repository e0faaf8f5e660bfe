#include "fuzz/material.h"
#include "fuzz/targets.h"
#include "text/chat_models.h"
#include "text/grammar/grammar.h"
#include "text/grammar/grammar_parser.h"

namespace knap::fuzz::grammar_target_parts {
namespace {

constexpr int kTokens = 12;          // of an answer
constexpr std::size_t kForced = 64;  // bytes of text

const Tokenizer& tokenizer() {
    static const auto loaded = test::load_vocabulary(test::bpe_vocabulary());
    return *loaded;
}

std::vector<Token> every_token() {
    std::vector<Token> tokens;
    for (Token token = 0; token < tokenizer().n_vocab(); ++token) {
        tokens.push_back(token);
    }
    return tokens;
}

// Writes an answer: of the tokens that fit, those that the choices name.
void write_answer(GrammarState& state, Choices& choices) {
    for (int i = 0; i < kTokens && !state.has_ended(); ++i) {
        expect(state.forced_text(kForced).size() <= kForced, "a forced text has a limit");
        std::vector<Token> fitting = every_token();
        state.keep_fitting(fitting);
        if (fitting.empty()) {
            return;
        }
        const Token token = fitting[choices.below(static_cast<std::uint32_t>(fitting.size()))];
        expect(state.accept(token), "a token that fits is accepted");
    }
}

// A few choices, and the grammar.
void run(std::string_view input) {
    Choices choices(input.substr(0, kTokens));
    const Grammar grammar{
        .text = std::string(input.substr(std::min<std::size_t>(input.size(), kTokens)))};
    is_accepted([&] {
        parse_grammar(grammar.text)->text();
        if (!grammar.text.empty()) {
            GrammarState state(tokenizer(), grammar);
            write_answer(state, choices);
        }
    });
}

std::vector<std::string> seeds() {
    std::vector<std::string> all = with_any(string_literals("tests/text/grammar"), {"::="});
    for (const std::string& schema :
         with_any(string_literals("tests/text/grammar/json_schema_test.cpp"), {"\"type\""})) {
        is_accepted([&] { all.push_back(json_schema_to_gbnf(schema)); });
    }
    for (std::string& grammar : all) {
        grammar.insert(0, "abcdefghijkl");
    }
    for (const std::string& text : deep_and_long()) {
        all.push_back("abcdefghijkl" + text);
        all.push_back("abcdefghijklroot ::= " + text);
        all.push_back("abcdefghijklroot ::= \"" + text + "\"");
    }
    return all;
}

}  // namespace
}  // namespace knap::fuzz::grammar_target_parts

knap::fuzz::Target knap::fuzz::grammar_target() {
    using namespace grammar_target_parts;
    return {.name = "grammar",
            .run = run,
            .seeds = seeds,
            .max_bytes = 1024,
            .word_sources = {"src/text/grammar/grammar_parser.cpp"}};
}

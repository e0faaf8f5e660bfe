// What can be told from a grammar's text (GBNF) without a vocabulary.
#pragma once

#include <string>
#include <string_view>

namespace knap {

// libllama parses and checks grammars recursively; these limits keep it from exhausting the stack.
inline constexpr std::size_t kMaxGrammarBytes = 256 * 1024;
inline constexpr int kMaxGrammarDepth = 256;  // of parentheses

// Throws knap::Error when the text is too long, too deep or not a text.
void check_grammar_text(std::string_view text);

// Whether rules name tokens, as in <think> or <[12]>, outside of literals.
bool names_tokens(std::string_view text);

// One line from the message of libllama's parser, which quotes the whole rest of the grammar after
// the place of the fault: the line's number and its beginning instead.
std::string grammar_fault(std::string_view message, std::string_view text);

}  // namespace knap

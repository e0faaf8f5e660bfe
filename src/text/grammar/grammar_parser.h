// Grammars in GBNF as libllama reads them. What cannot be read here never reaches libllama, which
// does not end on {3,2}, for one.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "text/grammar/grammar_rules.h"

namespace knap {

inline constexpr std::size_t kMaxGrammarBytes = 256 * 1024;
inline constexpr int kMaxGrammarDepth = 256;  // of parentheses, which are parsed recursively

// The rules of a grammar. Throws knap::Error that tells what is wrong with it, in which line; also
// when it is too large or too deep, and when it would take too long to compile (grammar_work.h).
std::shared_ptr<const GrammarRules> parse_grammar(std::string_view text);

}  // namespace knap

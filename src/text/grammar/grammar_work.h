// How much work it is for libllama to compile a grammar, told from the rules alone: a grammar of a
// few lines may take it hours, or all memory, and it cannot be interrupted.
#pragma once

#include "text/grammar/grammar_rules.h"

namespace knap {

// Throws knap::Error when a rule begins with itself, which has no end; when one leads to nothing,
// on which libllama aborts; and when the rules have more ways to begin, or to go on anywhere, than
// compile in a second.
void check_grammar_work(const GrammarRules& rules);

}  // namespace knap

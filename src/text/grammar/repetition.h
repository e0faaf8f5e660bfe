// Repetitions in a grammar, written out as rules.
#pragma once

#include <cstdint>
#include <optional>

#include "text/grammar/grammar_rules.h"

namespace knap {

struct Repetition {
    std::uint32_t least = 1;
    std::optional<std::uint32_t> most = 1;  // nullopt: any number; at least `least`
};

// The item so many times. The rules grow with the logarithm of the counts: libllama would write a
// rule for every repetition, and refuses or ignores counts over 2,000.
GrammarRules::Sequence repeated(const GrammarRules::Sequence& item,
                                const Repetition& repetition,
                                GrammarRules& rules);

}  // namespace knap

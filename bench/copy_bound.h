// The speed that copying after matches would have reached on a known text.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "knap/types.h"

#include "decode/lookup/lookup_source.h"

namespace knap::bench {

// Copy `length` tokens after every match of at least `min_match` tokens.
struct CopyRule {
    int min_match = 2;
    int length = 1;
};

// The speed over plain decoding on an answer, which is `text` after its first `n_prompt` tokens. A
// round with a copy of g tokens costs `verify_ratio[g]` plain steps; tokens outside copies are
// written at `rest_speed`. The first token of the answer comes from the prefill and is not counted.
inline double copy_speed(std::span<const Token> text,
                         std::size_t n_prompt,
                         const CopyRule& rule,
                         std::span<const double> verify_ratio,
                         double rest_speed) {
    LookupSource source({.min = 2, .max = 4});
    source.begin(text.first(n_prompt));
    double steps = 0;
    std::size_t n_written = n_prompt + 1;
    while (n_written < text.size()) {
        // A round emits one token more than it accepts.
        const auto n_left = static_cast<int>(text.size() - n_written);
        const auto found = source.find(text.first(n_written), std::min(rule.length, n_left - 1));
        if (found.tokens.empty() || found.match_length < rule.min_match) {
            steps += 1 / rest_speed;
            ++n_written;
            continue;
        }
        const auto wrong = std::ranges::mismatch(found.tokens, text.subspan(n_written)).in1;
        steps += verify_ratio[found.tokens.size()];
        n_written += static_cast<std::size_t>(wrong - found.tokens.begin()) + 1;
    }
    return steps > 0 ? static_cast<double>(text.size() - n_prompt - 1) / steps : rest_speed;
}

// The best speed over copying nothing and every rule whose length `verify_ratio` covers.
inline double copy_bound(std::span<const Token> text,
                         std::size_t n_prompt,
                         std::span<const double> verify_ratio,
                         double rest_speed) {
    constexpr std::array kShortestMatches{2, 3, 4, 5, 7, 10, 16};
    double best = rest_speed;
    for (const int min_match : kShortestMatches) {
        for (int length = 1; length < static_cast<int>(verify_ratio.size()); ++length) {
            best = std::max(best,
                            copy_speed(text, n_prompt, {.min_match = min_match, .length = length},
                                       verify_ratio, rest_speed));
        }
    }
    return best;
}

}  // namespace knap::bench

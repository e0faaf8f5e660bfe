// The tokens that may come next, by what followed earlier occurrences of the last tokens, and how
// far to trust each of them (docs/methods.md, "Copies that learn"). Arithmetic only.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "knap/types.h"

#include "decode/copies/copied_texts.h"

namespace knap {

// What speaks for a token.
struct CopyEvidence {
    // Among the tokens that followed matches, each of which has votes by its length and its order.
    enum class Standing {
        contested,  // the first choice, with less than kClearShare of the votes
        leading,    // the first choice, with more votes, or that of the only match
        agreed,     // all of several matches were followed by this token
        second,     // another choice, with kNoticedShare of the votes or more
        rare,       // another choice, with fewer votes
    };
    static constexpr int kStandings = 5;
    static constexpr double kClearShare = 0.6;
    static constexpr double kNoticedShare = 0.2;

    int length = 0;  // of the longest match that was followed by this token
    Standing standing = Standing::leading;
};

struct CopyCandidate {
    Token token = 0;
    CopyEvidence evidence{};
    std::vector<Match> matches{};  // that were followed by this token
};

// The token after a match, if it is known yet: a match in a text that is still being written may
// go on into `path`, tokens that come after the text.
std::optional<Token> token_after(const Match& match, std::span<const Token> path);

// Fills `candidates` with up to `n_most` tokens that followed `matches`, which are in the order of
// CopiedTexts::find(); the one with the most votes first, of equals the one that comes first there.
void rank_candidates(std::span<const Match> matches,
                     std::span<const Token> path,
                     std::size_t n_most,
                     std::vector<CopyCandidate>& candidates);

}  // namespace knap

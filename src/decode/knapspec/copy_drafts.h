// Drafts copied after a match in the text, or along a prediction, offered with their expected
// acceptance. Every position of the answer tests the copy that could have been made there, drafted
// or not, so the acceptance is known before anything is risked (docs/methods.md, "Copies by match
// length").
#pragma once

#include <optional>
#include <span>

#include "knap/types.h"

#include "decode/knapspec/match_acceptance.h"
#include "decode/knapspec/speed_ledger.h"
#include "decode/lookup/lookup_source.h"
#include "decode/lookup/prediction_cursor.h"
#include "decode/strategy.h"

namespace knap {

// Lengths of the matches that copies may follow.
inline constexpr NgramRange kCopyMatches{.min = 2, .max = 4};

class CopyDrafts {
  public:
    CopyDrafts();

    void begin(const RequestStart& request);
    // Processes the tokens that the text has gained; it is now `history`.
    void follow(std::span<const Token> history);

    struct Offer {
        std::span<const Token> tokens;  // valid until the next offer
        AcceptanceByDepth acceptance;   // of each token
    };
    // Returns up to `max_tokens` tokens that may follow `history`, which follow() has processed.
    // Returns nullopt if nothing matches or copies are suspended. `is_choice`: the grammar of the
    // answer, if it has one, leaves the next token open.
    std::optional<Offer> offer(std::span<const Token> history,
                               int max_tokens,
                               bool is_choice = false);

    // Records a round that verified a copy: it took `ms`, and plain decoding would have taken
    // `plain_ms` for the same tokens. Returns false if copies keep losing time and are now
    // suspended.
    bool record_round(double ms, double plain_ms);
    bool is_suspended() const { return n_followed_ < suspended_until_; }

  private:
    MatchAcceptance& of_matches() { return is_constrained_ ? structured_ : prose_; }
    // Of the token that comes next.
    MatchAcceptance& of_next() { return is_constrained_ && is_choice_ ? choices_ : of_matches(); }

    LookupSource source_;
    PredictionCursor prediction_;
    MatchAcceptance prose_{CopiedText::prose};
    MatchAcceptance structured_{CopiedText::structured};
    MatchAcceptance choices_{CopiedText::choice};
    MatchAcceptance predicted_{CopiedText::predicted};
    bool is_constrained_ = false;  // the current answer
    bool is_choice_ = false;       // what comes after the text processed so far
    SpeedLedger ledger_;
    std::size_t n_followed_ = 0;       // tokens of the text processed so far
    std::size_t suspended_until_ = 0;  // length of the text
    int n_suspensions_ = 0;
};

}  // namespace knap

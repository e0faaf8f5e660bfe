// Tokens copied after a match in the text, offered with what they are worth. Every position of the
// answer is a test of the copy that could have been made there, drafted or not, so that the offers'
// acceptance is known before anything is risked on them.
#pragma once

#include <optional>
#include <span>

#include "knap/types.h"

#include "decode/knapspec/match_acceptance.h"
#include "decode/knapspec/speed_ledger.h"
#include "decode/lookup/lookup_source.h"

namespace knap {

// What copies may follow.
inline constexpr NgramRange kCopyMatches{.min = 2, .max = 4};

class CopyDrafts {
  public:
    CopyDrafts();

    void begin(std::span<const Token> prompt);
    // The text has grown to `history`.
    void follow(std::span<const Token> history);

    struct Offer {
        std::span<const Token> tokens;  // valid until the next offer
        AcceptanceByDepth acceptance;   // of each of them
    };
    // Up to `max_tokens` tokens to follow `history`, which was followed; none where nothing
    // matches, or where copies are suspended.
    std::optional<Offer> offer(std::span<const Token> history, int max_tokens);

    // A round that verified a copy took `ms` and emitted what plain decoding writes in `plain_ms`.
    // False: copies have not paid, and are suspended for a while.
    bool record_round(double ms, double plain_ms);
    bool is_suspended() const { return n_followed_ < suspended_until_; }

  private:
    LookupSource source_;
    MatchAcceptance acceptance_;
    SpeedLedger ledger_;
    std::size_t n_followed_ = 0;       // tokens of the text
    std::size_t suspended_until_ = 0;  // length of the text
    int n_suspensions_ = 0;
};

}  // namespace knap

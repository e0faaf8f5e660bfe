#include "decode/knapspec/copy_drafts.h"

#include <algorithm>
#include <cstddef>

#include "decode/knapspec/suspension.h"

namespace knap {

CopyDrafts::CopyDrafts() : source_(kCopyMatches) {}

void CopyDrafts::begin(const RequestStart& request) {
    source_.begin(request.prompt, request.references, request.prediction);
    prediction_.begin(request.prediction);
    n_followed_ = request.prompt.size();
    is_constrained_ = request.is_constrained;
    is_choice_ = false;
    of_matches().fade();
    choices_.fade();
    predicted_.fade();
    ledger_.clear();
    suspended_until_ = 0;
    n_suspensions_ = 0;
}

void CopyDrafts::follow(std::span<const Token> history) {
    for (; n_followed_ < history.size(); ++n_followed_) {
        const Token token = history[n_followed_];
        const auto found = source_.find(history.first(n_followed_), 1);
        if (!found.tokens.empty()) {
            of_next().observe(found.match_length, found.tokens.front() == token);
        }
        is_choice_ = false;  // not known inside a round
        if (const auto expected = prediction_.next(); !expected.empty()) {
            predicted_.observe(prediction_.match_length(), expected.front() == token);
        }
        prediction_.accept(token);
    }
}

std::optional<CopyDrafts::Offer> CopyDrafts::offer(std::span<const Token> history,
                                                   int max_tokens,
                                                   bool is_choice) {
    is_choice_ = is_choice;
    if (max_tokens <= 0 || is_suspended()) {
        return std::nullopt;
    }
    const auto make_offer = [](std::span<const Token> tokens, int match_length,
                               const MatchAcceptance& acceptance) {
        return Offer{
            .tokens = tokens,
            .acceptance = acceptance.of_copy(match_length, static_cast<int>(tokens.size()))};
    };
    const auto found = source_.find(history, max_tokens);
    const auto expected = prediction_.next();
    if (!expected.empty() && (found.tokens.empty() || predicted_.at(prediction_.match_length()) >=
                                                          of_next().at(found.match_length))) {
        const auto n = std::min(expected.size(), static_cast<std::size_t>(max_tokens));
        return make_offer(expected.first(n), prediction_.match_length(), predicted_);
    }
    if (found.tokens.empty()) {
        return std::nullopt;
    }
    Offer offer = make_offer(found.tokens, found.match_length, of_matches());
    offer.acceptance.first.front() = of_next().at(found.match_length);
    return offer;
}

bool CopyDrafts::record_round(double ms, double plain_ms) {
    ledger_.add(ms, plain_ms);
    if (!ledger_.is_losing()) {
        return true;
    }
    suspended_until_ = n_followed_ + suspension_tokens(n_suspensions_++);
    ledger_.clear();
    return false;
}

}  // namespace knap

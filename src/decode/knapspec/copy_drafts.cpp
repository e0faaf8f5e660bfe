#include "decode/knapspec/copy_drafts.h"

#include "decode/knapspec/suspension.h"

namespace knap {

CopyDrafts::CopyDrafts() : source_(kCopyMatches) {}

void CopyDrafts::begin(std::span<const Token> prompt,
                       std::span<const std::vector<Token>> references) {
    source_.begin(prompt, references);
    n_followed_ = prompt.size();
    acceptance_.fade();
    ledger_.clear();
    suspended_until_ = 0;
    n_suspensions_ = 0;
}

void CopyDrafts::follow(std::span<const Token> history) {
    for (; n_followed_ < history.size(); ++n_followed_) {
        const auto found = source_.find(history.first(n_followed_), 1);
        if (!found.tokens.empty()) {
            acceptance_.observe(found.match_length, found.tokens.front() == history[n_followed_]);
        }
    }
}

std::optional<CopyDrafts::Offer> CopyDrafts::offer(std::span<const Token> history, int max_tokens) {
    if (max_tokens <= 0 || is_suspended()) {
        return std::nullopt;
    }
    const auto found = source_.find(history, max_tokens);
    if (found.tokens.empty()) {
        return std::nullopt;
    }
    return Offer{.tokens = found.tokens,
                 .acceptance = acceptance_.of_copy(found.match_length,
                                                   static_cast<int>(found.tokens.size()))};
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

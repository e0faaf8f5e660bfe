#include "runtime/token_events.h"

#include "base/error.h"

namespace knap {
namespace {

TokenOrigin origin_of(const RoundOutcome& outcome, std::size_t i) {
    if (outcome.tree.is_empty()) {
        return TokenOrigin::plain;
    }
    if (i < outcome.path.size()) {
        return TokenOrigin::accepted;
    }
    const int last = outcome.path.empty() ? kPendingNode : outcome.path.back();
    return outcome.tree.first_child(last) >= 0 ? TokenOrigin::corrected : TokenOrigin::bonus;
}

// A token follows the accepted node before it, and the first one follows the pending token.
std::span<const float> deciding_row(const RoundOutcome& outcome, std::size_t i) {
    const int node = i == 0 ? kPendingNode : outcome.path[i - 1];
    return outcome.logits.row(row_of(node)).logits;
}

}  // namespace

DecidedToken emitted_token(const RoundOutcome& outcome, std::size_t i) {
    return {outcome.emitted[i], origin_of(outcome, i), deciding_row(outcome, i)};
}

TokenEvents::TokenEvents(const Observer& observer, int n_logprobs) : observer_(observer) {
    if (n_logprobs < -1 || n_logprobs > kMaxLogprobs) {
        fail("`.n_logprobs`: expected -1..", kMaxLogprobs, ", found ", n_logprobs);
    }
    if (n_logprobs >= 0) {
        logprobs_.emplace(static_cast<std::size_t>(n_logprobs));
    }
}

void TokenEvents::report(const DecidedToken& decided, int position) {
    if (!observer_.on_token) {
        return;
    }
    TokenEvent event{.token = decided.token, .origin = decided.origin, .position = position};
    if (logprobs_) {
        const RowLogprobs row = logprobs_->of(decided.logits, decided.token);
        event.logprob = row.logprob;
        event.top = row.top;
    }
    observer_.on_token(event);
}

}  // namespace knap

#include "sampling/ratio_rule.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace knap {

namespace {

void normalize(std::span<double> weights, double total) {
    for (double& weight : weights) {
        weight /= total;
    }
}

double sum(std::span<const double> weights) {
    return std::accumulate(weights.begin(), weights.end(), 0.0);
}

}  // namespace

double keep_probability(double p, double q) {
    return p < q ? p / q : 1.0;
}

void leave_residual(std::span<double> p, std::span<const double> q) {
    double total = 0.0;
    for (std::size_t i = 0; i < p.size(); ++i) {
        total += std::max(0.0, p[i] - q[i]);
    }
    if (total <= 0.0) {
        return;
    }
    for (std::size_t i = 0; i < p.size(); ++i) {
        p[i] = std::max(0.0, p[i] - q[i]) / total;
    }
}

void exclude(std::span<double> probabilities, std::size_t entry) {
    // Sums the others: for an entry near 1, one minus it would be mostly rounding error.
    const double total = sum(probabilities.first(entry)) + sum(probabilities.subspan(entry + 1));
    if (total <= 0.0) {
        return;
    }
    probabilities[entry] = 0.0;
    normalize(probabilities, total);
}

void RatioTrial::start(const Distribution& p, const Distribution* q, int n_vocab) {
    for (const Token token : tokens_) {
        entries_[static_cast<std::size_t>(token)] = kNoEntry;
    }
    entries_.resize(static_cast<std::size_t>(n_vocab), kNoEntry);
    tokens_.clear();
    p_.clear();
    q_.clear();
    is_drawn_ = q != nullptr;
    for (std::size_t i = 0; i < p.tokens.size(); ++i) {
        p_[entry_of(p.tokens[i])] = p.probabilities[i];
    }
    // The floats of a distribution sum to 1 only up to rounding. Normalise in double precision.
    normalize(p_, sum(p_));
    if (q != nullptr) {
        for (std::size_t i = 0; i < q->tokens.size(); ++i) {
            q_[entry_of(q->tokens[i])] = q->probabilities[i];
        }
        normalize(q_, sum(q_));
    }
}

double RatioTrial::keep_probability(Token draft) const {
    const std::int32_t entry = find(draft);
    const double p = entry == kNoEntry ? 0.0 : p_[static_cast<std::size_t>(entry)];
    if (!is_drawn_) {
        return p;
    }
    const double q = entry == kNoEntry ? 0.0 : q_[static_cast<std::size_t>(entry)];
    KNAP_ASSERT(q > 0.0, "a token is drawn once, from a distribution that can draw it");
    return knap::keep_probability(p, q);
}

void RatioTrial::reject(Token draft) {
    if (is_drawn_) {
        leave_residual(p_, q_);
    }
    const std::int32_t entry = find(draft);
    if (entry != kNoEntry) {
        exclude(is_drawn_ ? q_ : p_, static_cast<std::size_t>(entry));
    }
}

// The token's index; adds an entry if there is none.
std::size_t RatioTrial::entry_of(Token token) {
    std::int32_t& entry = entries_[static_cast<std::size_t>(token)];
    if (entry == kNoEntry) {
        entry = static_cast<std::int32_t>(tokens_.size());
        tokens_.push_back(token);
        p_.push_back(0.0);
        q_.push_back(0.0);
    }
    return static_cast<std::size_t>(entry);
}

std::int32_t RatioTrial::find(Token token) const {
    KNAP_ASSERT(token >= 0 && static_cast<std::size_t>(token) < entries_.size(),
                "only tokens of the vocabulary are drafted");
    return entries_[static_cast<std::size_t>(token)];
}

}  // namespace knap

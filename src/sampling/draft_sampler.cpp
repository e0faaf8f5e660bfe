#include "sampling/draft_sampler.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "sampling/exponential.h"
#include "sampling/row_maximum.h"

namespace knap {

DraftSampler::DraftSampler(Sampler& sampler, AcceptanceRule rule)
    : sampler_(sampler), rule_(rule) {}

std::optional<DrawRule> DraftSampler::draw_rule() const {
    const bool has_own_noise = !sampler_.is_greedy() && rule_ != AcceptanceRule::shared_noise;
    return has_own_noise ? std::nullopt : sampler_.draw_rule();
}

const DraftChoice& DraftSampler::choose(std::span<const float> logits,
                                        std::int64_t position,
                                        int n_tokens) {
    KNAP_ASSERT(n_tokens > 0, "at least one token is drafted");
    const auto n = static_cast<std::size_t>(n_tokens);
    choice_.tokens.clear();
    if (sampler_.is_greedy()) {
        choose_largest(logits, n);
        return choice_;
    }
    choice_.is_drawn = rule_ == AcceptanceRule::ratio;
    sampler_.distribution(logits, choice_.q);
    draw_several(choice_.q, noise(position), n, draws_);
    for (const Draw& draw : draws_) {
        choice_.tokens.push_back(draw.token);
    }
    return choice_;
}

void DraftSampler::choose_largest(std::span<const float> logits, std::size_t n_tokens) {
    const std::span<const float> adjusted = sampler_.adjust(logits);
    const Token best = find_maximum(adjusted).token;
    if (n_tokens == 1) {
        choice_.tokens.push_back(best);
        return;
    }
    ranking_.take_largest(adjusted, n_tokens);
    ranking_.sort();
    for (const RankKey key : ranking_.keys()) {
        if (choice_.tokens.size() == n_tokens) {
            break;  // ties with the last one
        }
        choice_.tokens.push_back(token_of(key));
    }
}

// The ratio rule assumes that drafts are draws from q, whatever came before. When an ancestor of a
// draft is rejected, its position may be drafted again in a later round. By then the strategy has
// seen the first draft, and what it learned may affect how, and whether, it drafts there again.
// With the same noise the second draft would not be a draw from q, so every attempt gets fresh
// noise. Under the other rules any noise gives plain decoding's tokens.
PositionNoise DraftSampler::noise(std::int64_t position) {
    const PositionNoise own = sampler_.noise(position);
    if (rule_ == AcceptanceRule::shared_noise) {
        return own;
    }
    if (position <= highest_position_) {
        ++attempt_;
    }
    highest_position_ = std::max(highest_position_, position);
    return own.independent(NoisePurpose::draft, attempt_);
}

namespace {

constexpr std::size_t kSumLanes = 32;
constexpr std::size_t kSumBlock = 32 * kSumLanes;

// Uses lanes like row_maximum.cpp. A separate loop clamps x, which keeps branches out of the other.
double sum_exp(std::span<const float> block, float maximum) {
    std::array<float, kSumLanes> sums{};
    const std::size_t n_whole = block.size() / kSumLanes * kSumLanes;
    for (std::size_t i = 0; i < n_whole; i += kSumLanes) {
        std::array<float, kSumLanes> x;
        for (std::size_t lane = 0; lane < kSumLanes; ++lane) {
            x[lane] = std::max(block[i + lane] - maximum, kExpLowest);
        }
        for (std::size_t lane = 0; lane < kSumLanes; ++lane) {
            sums[lane] += approximate_exp(x[lane]);
        }
    }
    double total = 0.0;
    for (const float sum : sums) {
        total += sum;
    }
    for (const float logit : block.subspan(n_whole)) {
        total += approximate_exp(std::max(logit - maximum, kExpLowest));
    }
    return total;
}

}  // namespace

float confidence(std::span<const float> logits, Token token) {
    const float maximum = find_maximum(logits).logit;
    // Short blocks, so that each float sum has few terms.
    double total = 0.0;
    for (std::size_t begin = 0; begin < logits.size(); begin += kSumBlock) {
        const auto block = logits.subspan(begin, std::min(kSumBlock, logits.size() - begin));
        total += sum_exp(block, maximum);
    }
    // Uses the same exponential as the sum, so the quotient is at most 1.
    const float logit = logits[static_cast<std::size_t>(token)];
    const float own = approximate_exp(std::max(logit - maximum, kExpLowest));
    return static_cast<float>(own / total);
}

float confidence(std::span<const float> logits, const DraftChoice& choice, ConfidenceOf whose) {
    const Token token = choice.tokens.front();
    if (whose == ConfidenceOf::most_probable) {
        return confidence(logits, find_maximum(logits).token);
    }
    if (whose == ConfidenceOf::drawn && !choice.q.tokens.empty()) {
        const auto place = std::ranges::find(choice.q.tokens, token) - choice.q.tokens.begin();
        return choice.q.probabilities[static_cast<std::size_t>(place)];
    }
    return confidence(logits, token);
}

}  // namespace knap

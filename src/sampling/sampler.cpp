#include "sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "sampling/row_maximum.h"
#include "sampling/validate.h"

namespace knap {

Sampler::Sampler(const SamplingOptions& options, int n_vocab, int n_ctx)
    : n_vocab_(n_vocab),
      seed_(options.seed),
      temperature_(options.temperature),
      bias_(options.logit_bias),
      penalties_{.repeat = options.repeat_penalty,
                 .frequency = options.frequency_penalty,
                 .presence = options.presence_penalty} {
    validate(options, n_vocab);
    const int n_window = options.repeat_last_n < 0 ? n_ctx : std::min(options.repeat_last_n, n_ctx);
    if (penalties_.are_active() && n_window > 0) {
        window_.emplace(static_cast<std::size_t>(n_window), n_vocab);
    }
    if (options.temperature > 0.0f) {
        transform_.emplace(options);
    }
}

Token Sampler::sample(std::span<const float> logits, std::int64_t position) {
    if (is_greedy()) {
        return find_maximum(adjust(logits)).token;
    }
    distribution(logits, drawn_from_);
    return draw(drawn_from_, position);
}

Choice Sampler::sample_with_gap(std::span<const float> logits, std::int64_t position) {
    constexpr float kNoSecond = std::numeric_limits<float>::infinity();
    if (is_greedy()) {
        const std::span<const float> adjusted = adjust(logits);
        const RowMaximum best = find_maximum(adjusted);
        ranking_.take_largest(adjusted, 2);
        ranking_.sort();
        const std::vector<RankKey>& ranked = ranking_.keys();
        return {best.token, ranked.size() < 2 ? kNoSecond : best.logit - logit_of(ranked[1])};
    }
    distribution(logits, drawn_from_);
    draw_several(drawn_from_, noise(position), 2, best_two_);
    if (best_two_.size() < 2) {
        return {best_two_[0].token, kNoSecond};
    }
    const double gap = temperature_ * std::log(best_two_[0].ratio / best_two_[1].ratio);
    return {best_two_[0].token, static_cast<float>(gap)};
}

void Sampler::distribution(std::span<const float> logits, Distribution& out) {
    const std::span<const float> adjusted = adjust(logits);
    if (transform_) {
        transform_->apply(adjusted, out);
        return;
    }
    out.tokens.assign(1, find_maximum(adjusted).token);
    out.probabilities.assign(1, 1.0f);
}

Token Sampler::draw(const Distribution& distribution, std::int64_t position) const {
    return knap::draw(distribution, noise(position));
}

void Sampler::accept(Token token) {
    if (window_) {
        window_->push(token);
    }
}

void Sampler::rewind(std::size_t n_tokens) {
    if (window_) {
        window_->pop(n_tokens);
    }
}

// Returns `logits` itself when neither bias nor penalties are set.
std::span<const float> Sampler::adjust(std::span<const float> logits) {
    KNAP_ASSERT(logits.size() == static_cast<std::size_t>(n_vocab_),
                "a row has a logit for each token of the vocabulary");
    if (bias_.empty() && !window_) {
        return logits;
    }
    adjusted_.assign(logits.begin(), logits.end());
    apply_bias(bias_, adjusted_);
    if (window_) {
        window_->apply(penalties_, adjusted_);
    }
    return adjusted_;
}

}  // namespace knap

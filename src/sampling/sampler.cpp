#include "sampling/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "sampling/row_maximum.h"
#include "sampling/validate.h"

namespace knap {

namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();
constexpr float kNoSecond = std::numeric_limits<float>::infinity();  // a gap

// How many of the largest logits the constraint is asked about, as long as too few of them fit.
constexpr std::array<std::size_t, 3> kNumbersAsked = {64, 1024,
                                                      std::numeric_limits<std::size_t>::max()};

}  // namespace

Sampler::Sampler(const SamplingOptions& options, int n_vocab, int n_ctx)
    : n_vocab_(n_vocab),
      rule_{.temperature = options.temperature,
            .top_k = options.top_k,
            .top_p = options.top_p,
            .min_p = options.min_p,
            .seed = options.seed},
      n_ranked_(static_cast<std::size_t>(options.top_k > 0 ? options.top_k : n_vocab)),
      has_cuts_(options.top_k > 0 || options.top_p < 1.0f || options.min_p > 0.0f),
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

// Most choices fit, and to test one token is cheap. It is the choice among the tokens that fit if
// it does, unless cuts depend on what else fits.
Token Sampler::sample(std::span<const float> logits, std::int64_t position) {
    const std::span<const float> adjusted = adjust(logits);
    if (constraint_ == nullptr) {
        return choose(adjusted, position);
    }
    if (is_greedy() || !has_cuts_) {
        const Token token = choose(adjusted, position);
        if (constraint_->fits(token)) {
            return token;
        }
    }
    return choose(allow(adjusted), position);
}

Token Sampler::choose(std::span<const float> adjusted, std::int64_t position) {
    if (is_greedy()) {
        return find_maximum(adjusted).token;
    }
    transform_->apply(adjusted, drawn_from_);
    return draw(drawn_from_, position);
}

Choice Sampler::sample_with_gap(std::span<const float> logits, std::int64_t position) {
    const std::span<const float> adjusted =
        constraint_ == nullptr ? adjust(logits) : allow(adjust(logits), 2);
    if (is_greedy()) {
        const RowMaximum best = find_maximum(adjusted);
        ranking_.take_largest(adjusted, 2);
        ranking_.sort();
        const std::vector<RankKey>& ranked = ranking_.keys();
        return {best.token, ranked.size() < 2 ? kNoSecond : best.logit - logit_of(ranked[1])};
    }
    transform_->apply(adjusted, drawn_from_);
    return draw_with_gap(position);
}

Choice Sampler::draw_with_gap(std::int64_t position) {
    draw_several(drawn_from_, noise(position), 2, best_two_);
    if (best_two_.size() < 2) {
        return {best_two_[0].token, kNoSecond};
    }
    const double gap = rule_.temperature * std::log(best_two_[0].ratio / best_two_[1].ratio);
    return {best_two_[0].token, static_cast<float>(gap)};
}

int Sampler::n_best_needed() const {
    if (!takes_raw_logits() || constraint_ != nullptr) {
        return 0;
    }
    if (is_greedy()) {
        return std::min(2, n_vocab_);
    }
    return rule_.top_k < n_vocab_ ? rule_.top_k : 0;
}

Token Sampler::sample(const LogitRow& row, std::int64_t position) {
    if (!row.logits.empty()) {
        return sample(row.logits, position);
    }
    if (is_greedy()) {
        return best_token(row);
    }
    transform_->apply(row.best, drawn_from_);
    return draw(drawn_from_, position);
}

Choice Sampler::sample_with_gap(const LogitRow& row, std::int64_t position) {
    if (!row.logits.empty()) {
        return sample_with_gap(row.logits, position);
    }
    if (!is_greedy()) {
        transform_->apply(row.best, drawn_from_);
        return draw_with_gap(position);
    }
    ranking_.take_largest(row.best, 2);
    ranking_.sort();
    const std::vector<RankKey>& ranked = ranking_.keys();
    const float gap = ranked.size() < 2 ? kNoSecond : logit_of(ranked[0]) - logit_of(ranked[1]);
    return {token_of(ranked[0]), gap};
}

std::optional<DrawRule> Sampler::draw_rule() const {
    return takes_raw_logits() ? std::optional(rule_) : std::nullopt;
}

void Sampler::distribution(std::span<const float> logits, Distribution& out) {
    distribute(adjust(logits), out);
}

void Sampler::allowed_distribution(std::span<const float> logits, Distribution& out) {
    const std::span<const float> adjusted = adjust(logits);
    distribute(constraint_ == nullptr ? adjusted : allow(adjusted), out);
}

void Sampler::distribute(std::span<const float> adjusted, Distribution& out) {
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
    extend(token);
    if (constraint_ == nullptr) {
        return;
    }
    if (decided_.empty()) {
        advance_constraint(token);
        return;
    }
    KNAP_ASSERT(decided_.front() == token, "what was decided becomes text, in its order");
    decided_.erase(decided_.begin());
}

void Sampler::decide(Token token) {
    if (constraint_ != nullptr) {
        advance_constraint(token);
        decided_.push_back(token);
    }
}

void Sampler::advance_constraint(Token token) {
    if (!constraint_->accept(token)) {
        fail("the answer does not fit `.grammar`: a trigger is complete inside token ", token,
             ", whose rest does not fit");
    }
}

void Sampler::extend(Token token) {
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

// The row with every token at -infinity that does not fit, or that does not count because enough
// larger ones fit: the `n_best` largest when greedy, the top k when cuts apply. So the constraint
// is rarely asked about the whole vocabulary. Bias and penalties act on each token by itself, so
// the result is the same as if the constraint came before them.
std::span<const float> Sampler::allow(std::span<const float> adjusted, std::size_t n_best) {
    find_maximum(adjusted);  // throws if there is none, or a NaN
    const std::size_t n_needed = is_greedy() ? n_best : n_ranked_;
    for (const std::size_t n : kNumbersAsked) {
        if (n < adjusted.size()) {
            ranking_.take_largest(adjusted, n);
        } else {
            ranking_.take_all(adjusted);
        }
        candidates_.clear();
        for (const RankKey key : ranking_.keys()) {
            candidates_.push_back(token_of(key));
        }
        const bool are_all = candidates_.size() < n;
        constraint_->keep_fitting(candidates_);
        if (are_all || candidates_.size() >= n_needed) {
            break;
        }
    }
    allowed_.assign(adjusted.size(), kForbidden);
    for (const Token token : candidates_) {
        allowed_[static_cast<std::size_t>(token)] = adjusted[static_cast<std::size_t>(token)];
    }
    return allowed_;
}

}  // namespace knap

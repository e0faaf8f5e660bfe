#include "sampling/logprobs.h"

#include <algorithm>
#include <cmath>

#include "sampling/row_maximum.h"

namespace knap {

namespace {

// The log-softmax of single logits. Everything is relative to the maximum, whose term of the sum is
// 1, so no exponential overflows and the most probable token keeps its digits.
class LogSoftmax {
  public:
    explicit LogSoftmax(std::span<const float> logits) : maximum_(find_maximum(logits).logit) {
        double total = 0.0;
        for (const float logit : logits) {
            total += std::exp(logit - maximum_);
        }
        log_total_ = std::log(total);
    }

    float operator()(float logit) const {
        return static_cast<float>(logit - maximum_ - log_total_);
    }

  private:
    double maximum_;
    double log_total_;
};

}  // namespace

RowLogprobs Logprobs::of(std::span<const float> logits, Token token) {
    const LogSoftmax log_softmax(logits);
    top_.clear();
    if (n_top_ > 0) {
        ranking_.take_largest(logits, n_top_);
        ranking_.sort();
        const std::span<const RankKey> ranked = ranking_.keys();
        for (const RankKey key : ranked.first(std::min(n_top_, ranked.size()))) {
            top_.push_back({token_of(key), log_softmax(logit_of(key))});
        }
    }
    return {log_softmax(logits[static_cast<std::size_t>(token)]), top_};
}

}  // namespace knap

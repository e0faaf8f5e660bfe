// Chooses tokens from logits according to SamplingOptions. The choice depends only on the logits,
// the accepted tokens (if penalties are set), the seed and the position.
//
// Speculation uses the parts: it accept()s a row's ancestors, calls distribution() for the row,
// undoes the accepts with rewind(), and then uses draw() or an acceptance rule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "knap/types.h"

#include "sampling/distribution.h"
#include "sampling/noise.h"
#include "sampling/penalties.h"
#include "sampling/ranking.h"

namespace knap {

struct Choice {
    Token token;
    // By how much, in logits, it was preferred to the second choice; infinite when there is none.
    // At temperature 0, the difference of the two largest logits; otherwise the temperature times
    // the difference of the two largest log p + gumbel.
    float gap;
};

class Sampler {
  public:
    // Throws knap::Error when the options are invalid. `n_ctx` limits the penalty window; a
    // repeat_last_n of -1 means `n_ctx`.
    Sampler(const SamplingOptions& options, int n_vocab, int n_ctx);

    // The token at `position` (counted from the start of the conversation), from the logits
    // [n_vocab] of the row before it. Throws knap::Error when the row has no usable maximum
    // (row_maximum.h).
    Token sample(std::span<const float> logits, std::int64_t position);

    // The same as sample(), and measures the gap.
    Choice sample_with_gap(std::span<const float> logits, std::int64_t position);

    // The two halves of sample(). At temperature 0 the distribution has only the greedy choice.
    void distribution(std::span<const float> logits, Distribution& out);
    Token draw(const Distribution& distribution, std::int64_t position) const;

    // The history for penalties: every token in order, including the prompt.
    void accept(Token token);
    void rewind(std::size_t n_tokens);  // undoes the last accept()s

    bool is_greedy() const { return !transform_.has_value(); }
    // True when the choice is the largest raw logit: greedy, without bias or penalties.
    bool takes_largest_logit() const { return is_greedy() && bias_.empty() && !window_; }
    int n_vocab() const { return n_vocab_; }
    // The noise that draw() uses at a position.
    PositionNoise noise(std::int64_t position) const { return {seed_, position}; }
    // The row with bias and penalties, which every choice starts from. Valid while `logits` is,
    // until the next call of any function that takes logits.
    std::span<const float> adjust(std::span<const float> logits);

  private:
    int n_vocab_;
    std::uint64_t seed_;
    float temperature_;
    std::vector<std::pair<Token, float>> bias_;
    Penalties penalties_;
    std::optional<PenaltyWindow> window_;         // empty: no penalties
    std::optional<SamplingTransform> transform_;  // empty: greedy
    std::vector<float> adjusted_;  // [n_vocab], or empty while nothing changes logits
    Distribution drawn_from_;
    Ranking ranking_;
    std::vector<Draw> best_two_;
};

// Extends a sampler's history temporarily. The destructor restores it, also after an exception.
class HistoryExtension {
  public:
    explicit HistoryExtension(Sampler& sampler) : sampler_(sampler) {}
    ~HistoryExtension() { sampler_.rewind(n_tokens_); }
    HistoryExtension(const HistoryExtension&) = delete;
    HistoryExtension& operator=(const HistoryExtension&) = delete;

    void accept(Token token) {
        sampler_.accept(token);
        ++n_tokens_;
    }

  private:
    Sampler& sampler_;
    std::size_t n_tokens_ = 0;
};

}  // namespace knap

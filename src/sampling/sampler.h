// Chooses tokens from logits as SamplingOptions say. The choice depends on the logits, the accepted
// tokens (where penalties look at them), the seed and the position; on nothing else.
//
// Speculation uses the parts: distribution() for a row whose ancestors are accept()ed first and
// taken back with rewind(), then draw() or an acceptance rule of its own.
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
    // By how much, in logits, it was preferred to the second choice; infinite where there is none.
    // Greedily the difference of the two largest logits; otherwise temperature times that of the
    // two largest log p + gumbel.
    float gap;
};

class Sampler {
  public:
    // Throws when the options are not valid. `n_ctx` is the longest window, and what a
    // repeat_last_n of -1 stands for.
    Sampler(const SamplingOptions& options, int n_vocab, int n_ctx);

    // The token at `position` (counted from the start of the conversation), from the logits of the
    // row before it [n_vocab]. Throws when the row has no usable maximum (row_maximum.h).
    Token sample(std::span<const float> logits, std::int64_t position);

    // sample(), measuring the gap.
    Choice sample_with_gap(std::span<const float> logits, std::int64_t position);

    // The two halves of sample(). At temperature 0 the distribution is the greedy choice alone.
    void distribution(std::span<const float> logits, Distribution& out);
    Token draw(const Distribution& distribution, std::int64_t position) const;

    // The history that penalties look at: every token in order, prompt included.
    void accept(Token token);
    void rewind(std::size_t n_tokens);  // takes back the last accept()s
    void reset();

    bool is_greedy() const { return !transform_.has_value(); }
    // Whether the choice is the largest logit as it comes: greedy, and nothing changes logits.
    bool takes_largest_logit() const { return is_greedy() && bias_.empty() && !window_; }
    int n_vocab() const { return n_vocab_; }
    // What draw() uses at a position.
    PositionNoise noise(std::int64_t position) const { return {seed_, position}; }
    // The row after bias and penalties, which every choice starts from. Valid until the next call
    // of any function that takes logits, and while `logits` are.
    std::span<const float> adjust(std::span<const float> logits);

  private:
    int n_vocab_;
    std::uint64_t seed_;
    float temperature_;
    std::vector<std::pair<Token, float>> bias_;
    Penalties penalties_;
    std::optional<PenaltyWindow> window_;         // none: penalties are off
    std::optional<SamplingTransform> transform_;  // none: greedy
    std::vector<float> adjusted_;  // [n_vocab], or empty while nothing changes logits
    Distribution drawn_from_;
    Ranking ranking_;
    std::vector<Draw> best_two_;
};

// Lets a sampler's history grow for a while, and takes it back in the end, also when a row throws.
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

// From logits to the distribution that a token is drawn from: the sampling transform. In this
// order, with temperature above 0:
//   1. logits are divided by the temperature;
//   2. top-k drops those strictly below the k-th largest (ties at the k-th stay);
//   3. top-p, on the softmax of the rest, keeps a token iff the mass ranked above it is < top_p;
//   4. min-p keeps those with p >= min_p * p_max;
//   5. softmax over the survivors.
// Rank is by probability, and by token id among equals. So the token that crosses top_p stays, and
// at least one token does.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "knap/types.h"

#include "sampling/noise.h"
#include "sampling/ranking.h"

namespace knap {

// The tokens that can be drawn, most probable first, lowest id first among equals. Probabilities
// sum to 1.
struct Distribution {
    std::vector<Token> tokens;         // [n]
    std::vector<float> probabilities;  // [n]
};

class SamplingTransform {
  public:
    explicit SamplingTransform(const SamplingOptions& options);  // its temperature must be above 0

    // logits [n_vocab], bias and penalties applied. `out` is overwritten; its memory is reused.
    // Throws when nothing can be chosen (row_maximum.h).
    void apply(std::span<const float> logits, Distribution& out);

  private:
    double drop_improbable(float maximum);
    float weight(float logit, float maximum) const;

    float temperature_;
    std::size_t top_k_;
    float top_p_;
    float min_p_;
    Ranking ranking_;
};

// argmax over v of log p(v) + gumbel(v): a draw from the distribution that depends on the noise
// alone. The second form is for probabilities that need not sum to 1: [n] tokens, [n] weights.
Token draw(const Distribution& distribution, const PositionNoise& noise);
Token draw(std::span<const Token> tokens,
           std::span<const double> weights,
           const PositionNoise& noise);

struct Draw {
    Token token;
    double ratio;  // its logarithm is log p + gumbel
};

// The n tokens with the largest log p(v) + gumbel(v), largest first: what draw() gives, then draws
// without replacement (Gumbel top-k). Fewer where fewer have a probability above 0. `out` is
// overwritten; its memory is reused.
void draw_several(const Distribution& distribution,
                  const PositionNoise& noise,
                  std::size_t n,
                  std::vector<Draw>& out);

}  // namespace knap

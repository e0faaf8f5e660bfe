// The sampling transform: turns logits into the distribution that a token is drawn from
// (docs/methods.md, "Sampling transform"). In this order, with a temperature above 0:
//   1. divides logits by the temperature;
//   2. top-k drops those strictly below the k-th largest (ties at the k-th stay);
//   3. top-p, on the softmax of the rest, keeps a token iff the mass ranked above it is < top_p;
//   4. min-p keeps those with p >= min_p * p_max;
//   5. softmax over the survivors.
// Tokens are ranked by probability, then by id. So the token that crosses top_p stays, and at least
// one token does.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "knap/types.h"

#include "sampling/noise.h"
#include "sampling/ranking.h"

namespace knap {

// The tokens that can be drawn, most probable first; among equals, lowest id first. Probabilities
// sum to 1.
struct Distribution {
    std::vector<Token> tokens;         // [n]
    std::vector<float> probabilities;  // [n]
};

class SamplingTransform {
  public:
    explicit SamplingTransform(const SamplingOptions& options);  // the temperature must be above 0

    // `logits` [n_vocab] include bias and penalties. Overwrites `out`, reusing its memory. Throws
    // when nothing can be chosen (row_maximum.h).
    void apply(std::span<const float> logits, Distribution& out);
    // The same from the tokens of a row that top-k may keep, in any order. Needs top-k.
    void apply(std::span<const RankKey> best, Distribution& out);

  private:
    void cut(float maximum, Distribution& out);
    double drop_improbable(float maximum);
    float weight(float logit, float maximum) const;

    float temperature_;
    std::size_t top_k_;
    float top_p_;
    float min_p_;
    Ranking ranking_;
};

// The argmax over v of log p(v) + gumbel(v): a draw from the distribution that depends only on the
// noise. The second form takes weights that need not sum to 1: [n] tokens, [n] weights.
Token draw(const Distribution& distribution, const PositionNoise& noise);
Token draw(std::span<const Token> tokens,
           std::span<const double> weights,
           const PositionNoise& noise);

struct Draw {
    Token token;
    double ratio;  // its logarithm is log p + gumbel
};

// The n tokens with the largest log p(v) + gumbel(v), largest first: the token of draw(), then
// further draws without replacement (Gumbel top-k). Gives fewer when fewer have a probability above
// 0. Overwrites `out`, reusing its memory.
void draw_several(const Distribution& distribution,
                  const PositionNoise& noise,
                  std::size_t n,
                  std::vector<Draw>& out);

}  // namespace knap

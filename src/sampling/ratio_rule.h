// The ratio rule at one node of a draft, without chance: with which probability each sibling is
// kept, and what is left of the target's distribution after rejections. Flipping coins and drawing
// is acceptance.h's; so that what comes out can be summed exactly over everything that may happen.
//
// A draft drawn from q is kept with probability min(1, p/q); a rejection leaves
// norm(max(0, p - q)). Together they give p (Leviathan et al. 2023):
//     q min(1, p/q) + (1 - sum min(p, q)) norm(max(0, p - q)) = min(p, q) + max(0, p - q) = p.
// What is left is a distribution like any other, so the next sibling is judged against it, with
// the q that this sibling was drawn from: without the tried tokens, renormalised. A draft that was
// chosen without chance has a q of 1 on itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "knap/types.h"

#include "sampling/distribution.h"

namespace knap {

// min(1, p/q), for a drafted token's probabilities; q > 0.
double keep_probability(double p, double q);
// p <- norm(max(0, p - q)). Where nothing is left, which takes a rejection by rounding alone, p
// stays as it is. [n] and [n], over the same tokens.
void leave_residual(std::span<double> p, std::span<const double> q);
// Sets an entry to 0 and renormalises. Where nothing is left, all stays as it is.
void exclude(std::span<double> probabilities, std::size_t entry);

// The siblings of one node, tried in turn.
class RatioTrial {
  public:
    // `q` is what the siblings are drawn from without replacement; null: chosen without chance.
    void start(const Distribution& p, const Distribution* q, int n_vocab);

    // Of the sibling to be tried next.
    double keep_probability(Token draft) const;
    void reject(Token draft);

    // What is left of p: its tokens, and their probabilities, which sum to 1.
    std::span<const Token> tokens() const { return tokens_; }
    std::span<const double> remaining() const { return p_; }

  private:
    static constexpr std::int32_t kNoEntry = -1;

    std::size_t entry_of(Token token);
    std::int32_t find(Token token) const;

    bool is_drawn_ = false;
    std::vector<Token> tokens_;          // [n] that p or q can draw
    std::vector<double> p_;              // [n]
    std::vector<double> q_;              // [n]; zeros where drafts are chosen without chance
    std::vector<std::int32_t> entries_;  // [n_vocab] a token's place in tokens_
};

}  // namespace knap

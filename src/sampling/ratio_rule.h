// The deterministic part of the ratio rule at one node of a draft: with what probability each
// sibling is accepted, and the residual of the whole model's distribution after rejections.
// acceptance.h draws the random numbers. This lets tests sum exactly over all outcomes.
//
// A draft drawn from q is accepted with probability min(1, p/q); a rejection leaves norm(max(0, p -
// q)). Together they give p (Leviathan et al. 2023):
//     q min(1, p/q) + (1 - sum min(p, q)) norm(max(0, p - q)) = min(p, q) + max(0, p - q) = p.
// The residual is a distribution like any other. So the next sibling is judged against it, with the
// q that this sibling was drawn from: without the tried tokens, renormalised. A draft that was
// chosen deterministically has q = 1 on itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "knap/types.h"

#include "sampling/distribution.h"

namespace knap {

// min(1, p/q) for the probabilities of a drafted token; q > 0.
double keep_probability(double p, double q);
// p <- norm(max(0, p - q)), [n] and [n] over the same tokens. Leaves p unchanged when the residual
// is 0, which only a rejection by rounding can cause.
void leave_residual(std::span<double> p, std::span<const double> q);
// Sets an entry to 0 and renormalises. Changes nothing when the rest is 0.
void exclude(std::span<double> probabilities, std::size_t entry);

// The siblings of one node, tried in turn.
class RatioTrial {
  public:
    // The siblings are drawn from `q` without replacement; null: chosen deterministically.
    void start(const Distribution& p, const Distribution* q, int n_vocab);

    // For the sibling to be tried next.
    double keep_probability(Token draft) const;
    void reject(Token draft);

    // The residual of p: its tokens, and their probabilities, which sum to 1.
    std::span<const Token> tokens() const { return tokens_; }
    std::span<const double> remaining() const { return p_; }

  private:
    static constexpr std::int32_t kNoEntry = -1;

    std::size_t entry_of(Token token);
    std::int32_t find(Token token) const;

    bool is_drawn_ = false;
    std::vector<Token> tokens_;          // [n] with probability in p or q
    std::vector<double> p_;              // [n]
    std::vector<double> q_;              // [n]; zeros when drafts are chosen deterministically
    std::vector<std::int32_t> entries_;  // [n_vocab] a token's index in tokens_
};

}  // namespace knap

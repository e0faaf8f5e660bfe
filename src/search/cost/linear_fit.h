// Least squares with a lower bound: for parts of a time, none of which can be negative.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace knap {

class LinearFit {
  public:
    explicit LinearFit(std::size_t n_unknowns) : n_unknowns_(n_unknowns) {}

    // One more equation: sum of coefficients[i] * x[i] = value. Its square error counts as it is.
    void add(std::span<const double> coefficients, double value);
    // A belief that x[unknown] is `value`; `weight` is the size of an error of 1 in it.
    void add_belief(std::size_t unknown, double value, double weight);

    // The x, each at least `lowest`, with the least sum of square errors. Every unknown needs a
    // belief of a weight above 0, which makes the answer the only one.
    std::vector<double> solve(double lowest) const;

  private:
    std::size_t n_unknowns_;
    std::vector<double> coefficients_;  // [n_unknowns] of each equation in turn
    std::vector<double> values_;
};

}  // namespace knap

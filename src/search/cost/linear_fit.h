// Least squares with a lower bound, for parts of a time, which cannot be negative.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace knap {

class LinearFit {
  public:
    explicit LinearFit(std::size_t n_unknowns) : n_unknowns_(n_unknowns) {}

    // Adds the equation: sum of coefficients[i] * x[i] = value. Scale both sides to weight it.
    void add(std::span<const double> coefficients, double value);
    // Adds a belief that x[unknown] is `value`; an error of 1 in it counts as `weight`.
    void add_belief(std::size_t unknown, double value, double weight);

    // Returns the x with the least sum of squared errors, each at least `lowest`. Every unknown
    // needs a belief with a weight above 0, which makes the solution unique.
    std::vector<double> solve(double lowest) const;

  private:
    std::size_t n_unknowns_;
    std::vector<double> coefficients_;  // [n_unknowns] per equation
    std::vector<double> values_;
};

}  // namespace knap

// Gaussian process regression: predicts the value at any point, with its uncertainty, from values
// at some points. The prior is a Matern kernel of smoothness 5/2 over values shifted and scaled to
// mean 0 and deviation 1.
#pragma once

#include <span>
#include <vector>

namespace knap {

struct GaussianProcessOptions {
    int n_variables = 0;
    // Variance of a value's error, in units of the variance of all values.
    double noise = 1e-2;
};

struct ProcessEstimate {
    double mean = 0;
    double deviation = 0;
};

class GaussianProcess {
  public:
    // Learns `values`, at least one, at `points` [n_variables, n_values]. The length scale, the
    // distance over which values stay similar, is the most probable of a few candidates; the
    // shortest of equals.
    GaussianProcess(const GaussianProcessOptions& options,
                    std::span<const double> points,
                    std::span<const double> values);

    // Estimates at `points` [n_variables, n].
    std::vector<ProcessEstimate> estimate(std::span<const double> points) const;

  private:
    int n_variables_;
    std::vector<double> points_;  // [n_variables, n_values]
    double mean_ = 0;
    double deviation_ = 1;
    double length_scale_ = 1;
    std::vector<double> factor_;   // [n_values, n_values] Cholesky factor of the covariance
    std::vector<double> weights_;  // [n_values] of each value in an estimated mean
};

}  // namespace knap

// Maximises a function that is costly to evaluate, using a Gaussian process: the next point to try
// is the one with the largest upper confidence bound, mean + kappa * deviation. Points are in the
// unit cube. Suggestions depend only on the seed and the points added.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace knap {

struct BayesianOptions {
    int n_variables = 0;
    double kappa = 2.5;    // how much uncertainty is worth
    double noise = 1e-2;   // variance of a score's error, in units of the scores' variance
    int n_samples = 2048;  // points to maximise the bound over
    std::uint64_t seed = 0;
};

class BayesianOptimiser {
  public:
    explicit BayesianOptimiser(const BayesianOptions& options);

    // `point` has one coordinate in [0, 1] per variable; the score is finite. Points may repeat.
    void add(std::span<const double> point, double score);

    // The point to try next; a random one before any is added.
    std::vector<double> suggest();
    // Uniform in the cube.
    std::vector<double> random_point();

  private:
    double uniform();
    std::span<const double> best_point() const;
    std::vector<double> samples();

    BayesianOptions options_;
    std::uint64_t n_drawn_ = 0;
    std::vector<double> points_;  // [n_variables, n_scores]
    std::vector<double> scores_;
};

}  // namespace knap

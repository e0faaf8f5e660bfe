#include "search/bayes/bayesian_optimiser.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/error.h"
#include "base/hash.h"
#include "search/bayes/gaussian_process.h"

namespace knap {

namespace {

// One sample in this many is close to the best point so far: in many dimensions no uniform sample
// is.
constexpr int kOneNearIn = 4;
// The largest difference in a coordinate of such a sample.
constexpr double kNearDistance = 0.25;

}  // namespace

BayesianOptimiser::BayesianOptimiser(const BayesianOptions& options) : options_(options) {
    KNAP_ASSERT(options.n_variables > 0 && options.n_samples > 0, "there is a point to suggest");
}

void BayesianOptimiser::add(std::span<const double> point, double score) {
    KNAP_ASSERT(point.size() == static_cast<std::size_t>(options_.n_variables),
                "a coordinate for every variable");
    KNAP_ASSERT(std::isfinite(score), "scores have a mean");
    points_.insert(points_.end(), point.begin(), point.end());
    scores_.push_back(score);
}

std::vector<double> BayesianOptimiser::suggest() {
    if (scores_.empty()) {
        return random_point();
    }
    const GaussianProcess process({.n_variables = options_.n_variables, .noise = options_.noise},
                                  points_, scores_);
    const std::vector<double> points = samples();
    const auto bound = [&](const ProcessEstimate& estimate) {
        return estimate.mean + options_.kappa * estimate.deviation;
    };
    const std::vector<ProcessEstimate> estimates = process.estimate(points);
    const auto best = std::ranges::max_element(estimates, {}, bound) - estimates.begin();
    const auto first = points.begin() + best * options_.n_variables;
    return {first, first + options_.n_variables};
}

std::vector<double> BayesianOptimiser::random_point() {
    std::vector<double> point(static_cast<std::size_t>(options_.n_variables));
    std::ranges::generate(point, [&] { return uniform(); });
    return point;
}

// In [0, 1), identical on every machine.
double BayesianOptimiser::uniform() {
    return static_cast<double>(mix_in(options_.seed, n_drawn_++) >> 11) * 0x1p-53;
}

std::span<const double> BayesianOptimiser::best_point() const {
    const auto n_variables = static_cast<std::size_t>(options_.n_variables);
    const auto best = std::ranges::max_element(scores_) - scores_.begin();
    return std::span(points_).subspan(static_cast<std::size_t>(best) * n_variables, n_variables);
}

// The points to maximise the bound over: [n_variables, n_samples].
std::vector<double> BayesianOptimiser::samples() {
    const std::span<const double> best = best_point();
    std::vector<double> all;
    for (int i = 0; i < options_.n_samples; ++i) {
        std::vector<double> point = random_point();
        if (i % kOneNearIn == 0) {
            std::ranges::transform(point, best, point.begin(), [](double random, double centre) {
                return std::clamp(centre + kNearDistance * (2 * random - 1), 0.0, 1.0);
            });
        }
        all.insert(all.end(), point.begin(), point.end());
    }
    return all;
}

}  // namespace knap

#include "search/bayes/gaussian_process.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <Eigen/Dense>

#include "base/error.h"

namespace knap {

namespace {

using Eigen::ArrayXd;
using Eigen::ArrayXXd;
using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using PointMap = Eigen::Map<const MatrixXd>;  // [n_variables, n]: a point is a column
using ValueMap = Eigen::Map<const VectorXd>;
using Factor = Eigen::LLT<MatrixXd>;

// The cost of a likelihood is cubic in the number of values, for each length scale tried. This many
// of the latest values are enough.
constexpr Index kValuesForLengthScale = 200;
// In units of the diagonal of the unit cube, which distances scale with.
constexpr std::array kLengthScales = {0.125, 0.25, 0.5, 1.0, 2.0, 4.0};

PointMap map_points(std::span<const double> points, int n_variables) {
    return {points.data(), n_variables, static_cast<Index>(points.size()) / n_variables};
}

ValueMap map_values(std::span<const double> values) {
    return {values.data(), static_cast<Index>(values.size())};
}

// [a.cols(), b.cols()]
MatrixXd distances(const PointMap& a, const PointMap& b) {
    MatrixXd squares = -2 * a.transpose() * b;
    squares.colwise() += a.colwise().squaredNorm().transpose();
    squares.rowwise() += b.colwise().squaredNorm();
    // Rounding can make the square of a zero distance negative.
    return squares.cwiseMax(0).cwiseSqrt();
}

// Rasmussen and Williams 2006, equation 4.17.
MatrixXd matern(const MatrixXd& distances, double length_scale) {
    const ArrayXXd r = std::sqrt(5.0) / length_scale * distances.array();
    return (1 + r + r.square() / 3) * (-r).exp();
}

Factor factorise(const MatrixXd& distances, double length_scale, double noise) {
    MatrixXd covariance = matern(distances, length_scale);
    covariance.diagonal().array() += noise;
    return Factor(covariance);
}

// The log density of the values, up to a constant (Rasmussen and Williams 2006, equation 5.8).
double log_likelihood(const Factor& factor, const VectorXd& values) {
    const double log_volume = factor.matrixLLT().diagonal().array().log().sum();
    return -values.dot(factor.solve(values)) / 2 - log_volume;
}

double most_probable_length_scale(const PointMap& points, const VectorXd& values, double noise) {
    const Index n = std::min(values.size(), kValuesForLengthScale);
    const PointMap latest(points.rightCols(n).data(), points.rows(), n);
    const MatrixXd latest_distances = distances(latest, latest);
    double best = 0;
    double best_likelihood = -std::numeric_limits<double>::infinity();
    for (const double share : kLengthScales) {
        const double length_scale = share * std::sqrt(static_cast<double>(points.rows()));
        const Factor factor = factorise(latest_distances, length_scale, noise);
        const double likelihood = log_likelihood(factor, values.tail(n));
        if (likelihood > best_likelihood) {
            best = length_scale;
            best_likelihood = likelihood;
        }
    }
    return best;
}

}  // namespace

GaussianProcess::GaussianProcess(const GaussianProcessOptions& options,
                                 std::span<const double> points,
                                 std::span<const double> values)
    : n_variables_(options.n_variables), points_(points.begin(), points.end()) {
    KNAP_ASSERT(n_variables_ > 0 && options.noise > 0, "the covariance is positive definite");
    KNAP_ASSERT(
        !values.empty() && points.size() == values.size() * static_cast<std::size_t>(n_variables_),
        "a point for every value");
    const PointMap where = map_points(points_, n_variables_);
    VectorXd normalised = map_values(values);
    mean_ = normalised.mean();
    normalised.array() -= mean_;
    const double spread = std::sqrt(normalised.squaredNorm() / static_cast<double>(values.size()));
    deviation_ = spread > 0 ? spread : 1;
    normalised /= deviation_;

    length_scale_ = most_probable_length_scale(where, normalised, options.noise);
    const Factor factor = factorise(distances(where, where), length_scale_, options.noise);
    const VectorXd weights = factor.solve(normalised);
    weights_.assign(weights.begin(), weights.end());
    factor_.assign(factor.matrixLLT().data(),
                   factor.matrixLLT().data() + factor.matrixLLT().size());
}

std::vector<ProcessEstimate> GaussianProcess::estimate(std::span<const double> points) const {
    KNAP_ASSERT(points.size() % static_cast<std::size_t>(n_variables_) == 0, "whole points");
    const ValueMap weights = map_values(weights_);
    const Eigen::Map<const MatrixXd> factor(factor_.data(), weights.size(), weights.size());
    MatrixXd covariance =  // [n_values, n]
        matern(distances(map_points(points_, n_variables_), map_points(points, n_variables_)),
               length_scale_);
    const ArrayXd means = mean_ + deviation_ * (covariance.transpose() * weights).array();
    factor.triangularView<Eigen::Lower>().solveInPlace(covariance);
    const ArrayXd variances = 1 - covariance.colwise().squaredNorm().transpose().array();
    const ArrayXd deviations = deviation_ * variances.max(0).sqrt();

    std::vector<ProcessEstimate> estimates(static_cast<std::size_t>(means.size()));
    for (Index i = 0; i < means.size(); ++i) {
        estimates[static_cast<std::size_t>(i)] = {.mean = means[i], .deviation = deviations[i]};
    }
    return estimates;
}

}  // namespace knap

#include "search/cost/linear_fit.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include <Eigen/Dense>

#include "base/error.h"

namespace knap {

namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// Minimises x'Gx / 2 - h'x over x >= 0 with the active-set method of Lawson and Hanson (1974,
// chapter 23): unknowns are freed one by one, and fixed at 0 again where the others would make them
// negative.
class NonNegativeSolver {
  public:
    NonNegativeSolver(const Eigen::MatrixXd& g, const Eigen::VectorXd& h)
        : g_(g), h_(h), x_(Eigen::VectorXd::Zero(h.size())) {}

    Eigen::VectorXd solve() {
        // The error falls with every step, so no active set repeats; the bound guards against
        // rounding.
        for (Eigen::Index step = 0; step < 8 * x_.size() && set_free(); ++step) {
            while (!reach_minimum()) {
            }
        }
        return x_;
    }

  private:
    // Frees the unknown that lowers the error fastest. Returns false if none does.
    bool set_free() {
        const Eigen::VectorXd descent = h_ - g_ * x_;
        Eigen::Index best = -1;
        double fastest = 1e-12 * h_.cwiseAbs().maxCoeff();
        for (Eigen::Index i = 0; i < x_.size(); ++i) {
            if (descent[i] > fastest && std::ranges::find(free_, i) == free_.end()) {
                best = i;
                fastest = descent[i];
            }
        }
        if (best >= 0) {
            free_.push_back(best);
        }
        return best >= 0;
    }

    // Moves the free unknowns towards their common minimum. If one of them reaches 0 on the way, it
    // is fixed there and the others have a new minimum. Returns false if they still have to move
    // there.
    bool reach_minimum() {
        const Eigen::VectorXd there = g_(free_, free_).ldlt().solve(h_(free_));
        const Eigen::VectorXd here = x_(free_);
        double share = 1;  // of the way to the minimum
        std::size_t first_at_zero = free_.size();
        for (std::size_t i = 0; i < free_.size(); ++i) {
            const double from = here[static_cast<Eigen::Index>(i)];
            const double to = there[static_cast<Eigen::Index>(i)];
            const double share_to_zero = from > 0 ? from / (from - to) : 0;
            if (to <= 0 && share_to_zero <= share) {
                share = share_to_zero;
                first_at_zero = i;
            }
        }
        x_(free_) = here + share * (there - here);
        if (first_at_zero == free_.size()) {
            return true;
        }
        x_[free_[first_at_zero]] = 0;
        free_.erase(free_.begin() + static_cast<std::ptrdiff_t>(first_at_zero));
        return free_.empty();
    }

    const Eigen::MatrixXd& g_;
    const Eigen::VectorXd& h_;
    Eigen::VectorXd x_;
    std::vector<Eigen::Index> free_;
};

}  // namespace

void LinearFit::add(std::span<const double> coefficients, double value) {
    KNAP_ASSERT(coefficients.size() == n_unknowns_, "a coefficient for every unknown");
    coefficients_.insert(coefficients_.end(), coefficients.begin(), coefficients.end());
    values_.push_back(value);
}

void LinearFit::add_belief(std::size_t unknown, double value, double weight) {
    std::vector<double> row(n_unknowns_, 0.0);
    row[unknown] = weight;
    add(row, weight * value);
}

std::vector<double> LinearFit::solve(double lowest) const {
    const auto n_unknowns = static_cast<Eigen::Index>(n_unknowns_);
    const auto n_equations = static_cast<Eigen::Index>(values_.size());
    const Eigen::Map<const RowMajor> a(coefficients_.data(), n_equations, n_unknowns);
    const Eigen::Map<const Eigen::VectorXd> b(values_.data(), n_equations);
    // Measured from the bound, the unknowns are not negative.
    const Eigen::VectorXd bound = Eigen::VectorXd::Constant(n_unknowns, lowest);
    const Eigen::MatrixXd g = a.transpose() * a;
    const Eigen::VectorXd h = a.transpose() * (b - a * bound);
    const Eigen::VectorXd x = NonNegativeSolver(g, h).solve() + bound;
    return {x.begin(), x.end()};
}

}  // namespace knap

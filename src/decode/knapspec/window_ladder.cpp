#include "decode/knapspec/window_ladder.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace knap {

namespace {

// The log-odds of acceptance are a chain over the windows: those of the smallest are normally
// distributed, and each doubling adds a normally distributed step. The means are those of uniform
// windows at 7.6K tokens (docs/methods.md, "Uniform windows"), a little lower because later drafts
// of a round are less sure than first ones.
constexpr double kSmallestRecent = 64;
constexpr double kSmallestMean = 1.4;  // 0.80
constexpr double kSmallestVariance = 0.64;
constexpr double kDoublingMean = 0.23;  // 0.91 at 1,024
constexpr double kDoublingVariance = 0.09;
// The most drafts that the evidence of others is worth.
constexpr double kMaxWeight = 12;
// Newton's method is exact to many digits after so many steps from the means.
constexpr int kNewtonSteps = 8;

double rate_of(double log_odds) {
    return 1 / (1 + std::exp(-log_odds));
}

double doublings(int from, int to) {
    return std::max(0.01, std::log2(static_cast<double>(to) / from));
}

struct Estimate {
    double log_odds = 0;
    double variance = 0;
};

// The most probable log-odds of every window but with the evidence of window `left_out` ignored,
// and the variance of that one.
class Chain {
  public:
    Chain(std::span<const WindowEvidence> windows, std::size_t left_out)
        : windows_(windows), left_out_(left_out) {
        for (std::size_t i = 0; i < windows.size(); ++i) {
            const double n = i == 0 ? std::log2(windows[0].recent / kSmallestRecent)
                                    : doublings(windows[i - 1].recent, windows[i].recent);
            means_.push_back((i == 0 ? kSmallestMean : means_.back()) + kDoublingMean * n);
            steps_.push_back(i == 0 ? kSmallestVariance : kDoublingVariance * n);
        }
        values_ = means_;
    }

    Estimate estimate() {
        for (int i = 0; i < kNewtonSteps; ++i) {
            step();
        }
        return {.log_odds = values_[left_out_], .variance = variance_};
    }

  private:
    // One step: the likelihood is replaced by a normal one around the current values, which a
    // forward and a backward sweep over the chain solve. Both messages meet at every window.
    void step() {
        const std::size_t n = windows_.size();
        std::vector<Estimate> forward(n);  // before the window's own evidence
        std::vector<Estimate> own(n);      // in information form: precision times mean, precision
        for (std::size_t i = 0; i < n; ++i) {
            own[i] = seen(i);
        }
        for (std::size_t i = 0; i < n; ++i) {
            const double shift = i == 0 ? means_[0] : means_[i] - means_[i - 1];
            const Estimate before = i == 0 ? Estimate{} : with(forward[i - 1], own[i - 1]);
            forward[i] = {.log_odds = before.log_odds + shift,
                          .variance = before.variance + steps_[i]};
        }
        Estimate after;  // from the windows behind, in information form
        for (std::size_t i = n; i-- > 0;) {
            const Estimate here = with(with(forward[i], own[i]), after);
            values_[i] = here.log_odds;
            variance_ = i == left_out_ ? here.variance : variance_;
            after = i == 0 ? Estimate{} : passed_on(sum(own[i], after), i);
        }
    }

    // The evidence of a window in information form.
    Estimate seen(std::size_t i) const {
        if (i == left_out_ || windows_[i].judged <= 0) {
            return {};
        }
        const double rate = rate_of(values_[i]);
        const double precision = windows_[i].judged * std::max(rate * (1 - rate), 1e-3);
        const double gradient = windows_[i].accepted - windows_[i].judged * rate;
        return {.log_odds = precision * values_[i] + gradient, .variance = precision};
    }

    static Estimate sum(const Estimate& a, const Estimate& b) {
        return {.log_odds = a.log_odds + b.log_odds, .variance = a.variance + b.variance};
    }

    // An estimate with more information.
    static Estimate with(const Estimate& estimate, const Estimate& information) {
        const double precision = 1 / estimate.variance + information.variance;
        const double weighted = estimate.log_odds / estimate.variance + information.log_odds;
        return {.log_odds = weighted / precision, .variance = 1 / precision};
    }

    // What information about window `i` says about the one before it.
    Estimate passed_on(const Estimate& information, std::size_t i) const {
        if (information.variance <= 0) {
            return {};
        }
        const double mean = information.log_odds / information.variance;
        const double precision = 1 / (1 / information.variance + steps_[i]);
        return {.log_odds = precision * (mean - (means_[i] - means_[i - 1])),
                .variance = precision};
    }

    std::span<const WindowEvidence> windows_;
    std::size_t left_out_;
    std::vector<double> means_;   // before any evidence
    std::vector<double> steps_;   // variance of the step to each window
    std::vector<double> values_;  // log-odds
    double variance_ = 0;         // of the window that is left out
};

}  // namespace

std::vector<AcceptancePrior> beliefs_from_others(std::span<const WindowEvidence> windows) {
    std::vector<AcceptancePrior> beliefs;
    for (std::size_t i = 0; i < windows.size(); ++i) {
        const Estimate estimate = Chain(windows, i).estimate();
        const double rate = rate_of(estimate.log_odds);
        // A beta distribution with the same spread of the log-odds.
        const double weight = 1 / (estimate.variance * std::max(rate * (1 - rate), 1e-3));
        beliefs.push_back(prior_of(rate, std::min(weight, kMaxWeight)));
    }
    return beliefs;
}

}  // namespace knap

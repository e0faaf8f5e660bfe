#include "decode/swift/swift_search.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <span>
#include <utility>

#include "base/error.h"

namespace knap {

namespace {

// Layers that may lose modules: all but the first and the last.
int count_inner_layers(int n_layers) {
    return std::max(0, n_layers - 2);
}

ModulePlan every_second_layer(int n_layers) {
    ModulePlan plan(n_layers);
    for (int layer = 1; layer <= count_inner_layers(n_layers); layer += 2) {
        plan.set(layer, Module::attention, Level::skip);
        plan.set(layer, Module::mlp, Level::skip);
    }
    return plan;
}

// Indices of the `n` largest coordinates; of equals, the first.
std::vector<std::size_t> largest(std::span<const double> point, int n) {
    std::vector<std::size_t> places(point.size());
    std::iota(places.begin(), places.end(), 0);
    std::ranges::stable_sort(places, std::greater<>(), [&](std::size_t i) { return point[i]; });
    places.resize(static_cast<std::size_t>(n));
    return places;
}

ModulePlan skip_modules(int n_layers, std::span<const std::size_t> places) {
    const int n_inner = count_inner_layers(n_layers);
    ModulePlan plan(n_layers);
    for (const std::size_t place : places) {
        const int i = static_cast<int>(place);
        plan.set(1 + i % n_inner, i < n_inner ? Module::attention : Module::mlp, Level::skip);
    }
    return plan;
}

}  // namespace

int count_skipped_modules(int n_layers, double skip_ratio) {
    // Ratios are given as decimals, whose binary form may be slightly too small.
    constexpr double kRounding = 1e-4;
    return static_cast<int>(2 * count_inner_layers(n_layers) * skip_ratio + kRounding);
}

SwiftSearch::SwiftSearch(int n_layers, const SwiftSearchOptions& options)
    : options_(options),
      n_skipped_(count_skipped_modules(n_layers, options.skip_ratio)),
      optimiser_({.n_variables = 2 * count_inner_layers(n_layers), .seed = options.seed}),
      plan_(every_second_layer(n_layers)) {
    KNAP_ASSERT(n_skipped_ > 0, "there are modules to skip");
}

const SwiftCandidate& SwiftSearch::candidate() {
    KNAP_ASSERT(!end_, "the search is not over");
    if (!candidate_) {
        candidate_ = new_candidate();
    }
    return *candidate_;
}

// The optimiser's points are recorded as they are, random sets as zeros and ones.
SwiftCandidate SwiftSearch::new_candidate() {
    const bool is_suggested = (n_iterations_ + 1) % options_.bayes_interval == 0;
    std::vector<double> point = is_suggested ? optimiser_.suggest() : optimiser_.random_point();
    const std::vector<std::size_t> skipped = largest(point, n_skipped_);
    if (!is_suggested) {
        std::ranges::fill(point, 0.0);
        std::ranges::for_each(skipped, [&](std::size_t place) { point[place] = 1.0; });
    }
    return {.plan = skip_modules(plan_.n_layers(), skipped),
            .point = std::move(point),
            .is_suggested = is_suggested};
}

bool SwiftSearch::add_score(double score) {
    KNAP_ASSERT(candidate_, "a score belongs to a candidate");
    optimiser_.add(candidate_->point, score);
    const bool is_best = score > best_score_;
    if (is_best) {
        plan_ = candidate_->plan;
        best_score_ = score;
    }
    n_since_best_ = is_best ? 0 : n_since_best_ + 1;
    ++n_iterations_;
    candidate_.reset();
    end_ = find_end();
    return is_best;
}

// Beyond the limits, not at them, as in the published code (docs/methods.md, "SWIFT").
std::optional<SwiftEnd> SwiftSearch::find_end() const {
    if (best_score_ > options_.max_score) {
        return SwiftEnd::good_score;
    }
    if (n_since_best_ > options_.patience) {
        return SwiftEnd::out_of_patience;
    }
    if (n_iterations_ > options_.max_iterations) {
        return SwiftEnd::out_of_iterations;
    }
    return std::nullopt;
}

}  // namespace knap

#include "tools/offline_search/search_trials.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "decode/draft_verify/adaptive_threshold.h"
#include "search/bayes/bayesian_optimiser.h"

namespace knap {
namespace {

constexpr int kDefaultTrials = 100;
// Keeps the file of a model with a hundred layers below the size limit for reading it back.
constexpr int kMaxTrials = 10'000;
constexpr int kExitLayers = 8;

// Coordinates of the fixed starting points: close enough to one half that nearby points differ from
// them in a few modules.
constexpr double kRuns = 0.3;
constexpr double kSkips = 0.7;
constexpr std::size_t kHandMadePoints = 2;

// Two points: one skips the attention of every second inner layer, the other both modules of every
// fourth.
std::vector<std::vector<double>> hand_made_points(int n_layers) {
    const auto n = static_cast<std::size_t>(n_layers);
    const std::vector<double> whole_model(2 * n, kRuns);
    std::vector points(kHandMadePoints, whole_model);
    for (std::size_t layer = 1; layer + 1 < n; layer += 2) {
        points[0][layer] = kSkips;
    }
    for (std::size_t layer = 1; layer + 1 < n; layer += 4) {
        points[1][layer] = kSkips;
        points[1][n + layer] = kSkips;
    }
    return points;
}

// Three decimals are precise enough and keep the file short.
double rounded(double coordinate) {
    return std::round(coordinate * 1000) / 1000;
}

// Makes a new optimiser for each trial, so that its random numbers do not depend on earlier
// suggestions.
std::vector<double> suggested_point(const OfflineSearch& search) {
    BayesianOptimiser optimiser({
        .n_variables = 2 * search.model.n_layers,
        .seed = mix_in(static_cast<std::uint64_t>(search.settings.seed), search.trials.size()),
    });
    for (const PlanTrial& trial : search.trials) {
        optimiser.add(trial.point, trial.measured.speed);
    }
    std::vector<double> point = optimiser.suggest();
    std::ranges::transform(point, point.begin(), rounded);
    return point;
}

PlanTrial bayesian_trial(const OfflineSearch& search) {
    const std::size_t number = search.trials.size();
    const TrialOrigin origin = origin_of_trial(search.settings, number);
    std::vector<double> point = origin == TrialOrigin::starting_point
                                    ? hand_made_points(search.model.n_layers)[number]
                                    : suggested_point(search);
    ModulePlan plan = plan_at(point);
    return {
        .origin = origin,
        .plan = std::move(plan),
        .draft_max = ThresholdOptions().cap,
        .point = std::move(point),
    };
}

// Tries all draft lengths of an exit layer before the next exit layer.
PlanTrial grid_trial(const OfflineSearch& search) {
    const std::vector<int>& lengths = search.settings.lengths;
    const std::size_t number = search.trials.size();
    const int exit_layer = search.settings.exit_layers[number / lengths.size()];
    return {
        .origin = origin_of_trial(search.settings, number),
        .plan = early_exit_plan(search.model.n_layers, exit_layer),
        .draft_max = lengths[number % lengths.size()],
    };
}

int grid_size(const SearchSettings& settings) {
    return static_cast<int>(settings.exit_layers.size() * settings.lengths.size());
}

}  // namespace

ModulePlan plan_at(std::span<const double> point) {
    const std::size_t n_layers = point.size() / 2;
    ModulePlan plan(static_cast<int>(n_layers));
    for (std::size_t i = 0; i < point.size(); ++i) {
        if (point[i] > 0.5) {
            plan.set(static_cast<int>(i % n_layers), i < n_layers ? Module::attention : Module::mlp,
                     Level::skip);
        }
    }
    return plan;
}

std::vector<int> default_exit_layers(int n_layers) {
    const int step = std::max(1, n_layers / kExitLayers);
    std::vector<int> layers{step};
    while (layers.back() + step < n_layers) {
        layers.push_back(layers.back() + step);
    }
    return layers;
}

std::vector<int> default_draft_lengths() {
    return {2, 4, 6, 8};
}

int default_trials(const SearchSettings& settings) {
    return settings.method == SearchMethod::layerskip ? grid_size(settings) : kDefaultTrials;
}

int max_trials(const SearchSettings& settings) {
    return settings.method == SearchMethod::layerskip ? grid_size(settings) : kMaxTrials;
}

TrialOrigin origin_of_trial(const SearchSettings& settings, std::size_t number) {
    if (settings.method == SearchMethod::layerskip) {
        return TrialOrigin::grid;
    }
    return number < kHandMadePoints ? TrialOrigin::starting_point : TrialOrigin::optimiser;
}

PlanTrial next_trial(const OfflineSearch& search) {
    KNAP_ASSERT(static_cast<int>(search.trials.size()) < max_trials(search.settings),
                "a trial is left to make");
    return search.settings.method == SearchMethod::layerskip ? grid_trial(search)
                                                             : bayesian_trial(search);
}

}  // namespace knap

#include "search/module_weights.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/error.h"

namespace knap {

namespace {

// std::nearbyint rounds half to even, as the published code does.
int rounded_ratio(double larger_ms, double smaller_ms, int cap) {
    const double ratio = std::nearbyint(larger_ms / smaller_ms);
    return ratio < cap ? static_cast<int>(ratio) : cap;
}

// NaN if one of the times is NaN; such a level is left out.
double saved_ms(const ModuleTimes& module, const LevelTime& level) {
    return module.full_ms - std::max(level.ms, 0.0);
}

// The most time that a module can save.
double saveable_ms(const ModuleTimes& module) {
    double most = 0;
    for (const LevelTime& level : module.cheaper) {
        most = std::max(most, saved_ms(module, level));
    }
    return most;
}

// The total time that can be saved.
double budget_ms(std::span<const ModuleTimes> modules) {
    double saveable = 0;
    for (const ModuleTimes& module : modules) {
        saveable += saveable_ms(module);
    }
    return saveable;
}

// Rounds the saved time instead of both times: an error of at most half a bin instead of one.
KnapsackItem binned_item(const ModuleTimes& module, double bin_ms) {
    KnapsackItem item;
    for (const LevelTime& level : module.cheaper) {
        const double bins = std::nearbyint(saved_ms(module, level) / bin_ms);
        if (bins >= 1) {
            item.cheaper.push_back({.level = level.level, .saved = static_cast<int>(bins)});
        }
    }
    return item;
}

int leading_forced(std::span<const KnapsackItem> items) {
    const auto is_forced = [](const KnapsackItem& item) { return item.cheaper.empty(); };
    return static_cast<int>(std::ranges::find_if_not(items, is_forced) - items.begin());
}

}  // namespace

double positive_ms(double ms) {
    return ms > kMinModuleMs ? ms : kMinModuleMs;
}

KindWeights kind_weights(const KindTimes& times, std::optional<int> cap) {
    const double attention_ms = positive_ms(times.attention_ms);
    const double mlp_ms = positive_ms(times.mlp_ms);
    const int most = std::clamp(cap.value_or(kMaxKindWeight), 1, kMaxKindWeight);
    if (attention_ms > mlp_ms) {
        return {.attention = rounded_ratio(attention_ms, mlp_ms, most), .mlp = 1};
    }
    return {.attention = 1, .mlp = rounded_ratio(mlp_ms, attention_ms, most)};
}

KnapsackProblem skip_problem(const KindWeights& weights, const SkipProblemOptions& options) {
    const KnapsackItem attention = {
        .cheaper = {{.level = Level::skip, .saved = weights.attention}}};
    const KnapsackItem mlp = {.cheaper = {{.level = Level::skip, .saved = weights.mlp}}};
    KnapsackProblem problem{.budget = weights.total(options.n_layers) / 2};
    for (int layer = 0; layer < options.n_layers; ++layer) {
        const bool is_outer = layer == 0 || layer == options.n_layers - 1;
        const bool is_forced = options.forces_outer_layers && is_outer;
        problem.items.push_back(is_forced ? KnapsackItem{} : attention);
        problem.items.push_back(is_forced ? KnapsackItem{} : mlp);
    }
    // The published search starts after layer 0, whose two modules are forced.
    problem.first_module = options.forces_outer_layers ? std::min(2, 2 * options.n_layers) : 0;
    return problem;
}

BinnedProblem binned_problem(std::span<const ModuleTimes> modules, const BinOptions& options) {
    KNAP_ASSERT(options.n_bins > 0, "time is shared out over bins");
    const double total_ms = budget_ms(modules);
    BinnedProblem binned{
        .problem = {.budget = options.n_bins},
        .bin_ms = std::max(total_ms, kMinModuleMs) / options.n_bins,
    };
    for (const ModuleTimes& module : modules) {
        binned.problem.items.push_back(binned_item(module, binned.bin_ms));
    }
    binned.problem.first_module = leading_forced(binned.problem.items);
    return binned;
}

}  // namespace knap

// Times of modules as the integer weights that the knapsack counts in: the published rule (methods
// 3.5), with one weight for every attention and one for every MLP, and bins of a common width for
// modules and levels of any time (methods 3.15, O2).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "search/knapsack.h"

namespace knap {

// What the paper's cost model says at a context of n tokens: t_attn(n) = c2 * n + c3, t_mlp = c1.
struct KindTimes {
    double attention_ms = 0;
    double mlp_ms = 0;
};

// A fitted line may go below zero where nothing was measured. Times are raised to this.
inline constexpr double kMinModuleMs = 1e-6;
double positive_ms(double ms);

struct KindWeights {
    int attention = 1;  // wA
    int mlp = 1;        // wM

    int total(int n_layers) const { return (attention + mlp) * n_layers; }  // K
    bool operator==(const KindWeights&) const = default;
};

inline constexpr int kOfficialWeightCap = 5;
// Where there is no cap: keeps the table small when one of the times is next to nothing.
inline constexpr int kMaxKindWeight = 1000;

// The cheaper kind weighs 1, the other one the ratio of their times, rounded half to even and cut
// at `cap` (D4: the published code has a cap, the paper has none).
KindWeights kind_weights(const KindTimes& times, std::optional<int> cap = kOfficialWeightCap);

// Skip or run, with half of the total weight as the budget: B = K / 2.
struct SkipProblemOptions {
    int n_layers = 0;
    bool forces_outer_layers = true;  // D3: the published code always runs the first and last layer
};
KnapsackProblem skip_problem(const KindWeights& weights, const SkipProblemOptions& options);

struct LevelTime {
    Level level = Level::skip;
    double ms = 0;
};

struct ModuleTimes {
    double full_ms = 0;
    std::vector<LevelTime> cheaper{};  // empty: forced
};

struct BinOptions {
    // B. A choice that saves less than half a bin cannot be told from `full` and is left out, so
    // that there should be two or three bins for each module.
    int n_bins = 96;
};

struct BinnedProblem {
    KnapsackProblem problem;
    double bin_ms = 0;  // Delta
};

// [2L] times of the modules in their order. The bins share out what can be saved.
BinnedProblem binned_problem(std::span<const ModuleTimes> modules, const BinOptions& options = {});

}  // namespace knap

// Integer weights for the knapsack, from times of modules: the published rule with one weight for
// all attentions and one for all MLPs (docs/methods.md, "Integer weights"), and bins of equal width
// for modules and levels with any times (docs/methods.md, "Time bins").
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "search/knapsack.h"

namespace knap {

// Module times by the paper's cost model at a context of n tokens: t_attn(n) = c2 * n + c3, t_mlp =
// c1.
struct KindTimes {
    double attention_ms = 0;
    double mlp_ms = 0;
};

// A fitted line may fall below zero outside the measured range. Times are raised to this.
inline constexpr double kMinModuleMs = 1e-6;
double positive_ms(double ms);

struct KindWeights {
    int attention = 1;  // wA
    int mlp = 1;        // wM

    int total(int n_layers) const { return (attention + mlp) * n_layers; }  // K
    bool operator==(const KindWeights&) const = default;
};

inline constexpr int kOfficialWeightCap = 5;
// The limit without a cap: keeps the table small when one of the times is close to zero.
inline constexpr int kMaxKindWeight = 1000;

// The cheaper kind weighs 1, the other the ratio of their times, rounded half to even and limited
// to `cap`. The published code has a cap, the paper has none (docs/methods.md, "Where the paper and
// its code differ": weight cap).
KindWeights kind_weights(const KindTimes& times, std::optional<int> cap = kOfficialWeightCap);

// Modules run or are skipped; the budget is half the total weight, B = K / 2.
struct SkipProblemOptions {
    int n_layers = 0;
    bool forces_outer_layers = true;  // as in the published code; in the paper no module is forced
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
    // B. A level that saves less than half a bin cannot be distinguished from `full` and is left
    // out, so use two or three bins per module.
    int n_bins = 96;
};

struct BinnedProblem {
    KnapsackProblem problem;
    double bin_ms = 0;  // Delta
};

// `modules` [2L] in execution order. The bins divide up the total time that can be saved.
BinnedProblem binned_problem(std::span<const ModuleTimes> modules, const BinOptions& options = {});

}  // namespace knap

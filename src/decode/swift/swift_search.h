// SWIFT's search for the modules to skip (docs/methods.md, "SWIFT"), without the scoring of
// candidates: which sets of modules are tried, which one is kept, and when the search ends. A set
// has a fixed number of the attentions and MLPs between the first and the last layer.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "forward/module_plan.h"
#include "search/bayes/bayesian_optimiser.h"

namespace knap {

struct SwiftSearchOptions {
    double skip_ratio = 0.45;   // of the modules between the outer layers
    double max_score = 0.95;    // the search ends above this
    int patience = 300;         // the search ends beyond this many candidates without a better one
    int max_iterations = 1000;  // the search ends beyond this many candidates
    int bayes_interval = 25;  // one candidate in this many is the optimiser's; the rest are random
    std::uint64_t seed = 0;
};

// N, the number of modules to skip; 0 if there is none to skip.
int count_skipped_modules(int n_layers, double skip_ratio);

struct SwiftCandidate {
    ModulePlan plan;
    // A coordinate of 0 to 1 for each attention between the outer layers, then for each MLP.
    std::vector<double> point{};
    bool is_suggested = false;  // by the optimiser
};

enum class SwiftEnd { good_score, out_of_patience, out_of_iterations };

class SwiftSearch {
  public:
    // At least one module is skipped.
    SwiftSearch(int n_layers, const SwiftSearchOptions& options);

    // The candidate to score next. It stays the same until it has a score. The search must not be
    // over.
    const SwiftCandidate& candidate();
    // Records the candidate's score, 0 to 1. Returns true if it is the best so far; then its plan
    // is adopted.
    bool add_score(double score);

    // The plan with the best score. Until there is one, every second layer is skipped.
    const ModulePlan& plan() const { return plan_; }
    double best_score() const { return best_score_; }
    int n_iterations() const { return n_iterations_; }
    // Nullopt while the search goes on.
    std::optional<SwiftEnd> end() const { return end_; }

  private:
    SwiftCandidate new_candidate();
    std::optional<SwiftEnd> find_end() const;

    SwiftSearchOptions options_;
    int n_skipped_;
    BayesianOptimiser optimiser_;
    ModulePlan plan_;
    std::optional<SwiftCandidate> candidate_;
    double best_score_ = 0;
    int n_iterations_ = 0;
    int n_since_best_ = 0;
    std::optional<SwiftEnd> end_;
};

}  // namespace knap

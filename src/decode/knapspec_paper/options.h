// The settings of KnapSpec as published (docs/methods.md, "KnapSpec as published"). Where the paper
// and its published code differ ("Where the paper and its code differ"), a setting chooses; the
// defaults are the code's, as its run script calls it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "knap/types.h"

#include "search/knapsack.h"
#include "search/module_weights.h"
#include "search/throughput.h"

namespace knap {

struct ModelConfig;

// T: rounds from one search to the next.
struct SearchInterval {
    int rounds = 64;
    int rounds_of_large = 64;  // for models above kLargeModel parameters

    int for_model(std::int64_t n_parameters) const;
};
inline constexpr std::int64_t kLargeModel = 10'000'000'000;
// The search follows round 6 of an interval, counted from 0. A shorter interval would never search.
inline constexpr int kShortestInterval = 7;
inline constexpr int kLongestInterval = 1'000'000;

struct PaperOptions {
    int draft_max = 10;            // gamma_max
    float exit_confidence = 0.7f;  // stop after a token less probable than this; 0: never

    // Comments name rows of the table in docs/methods.md, "Where the paper and its code differ".
    KnapsackOptions knapsack{};                          // tau; ties, pruning test, unskipped state
    ChoiceRule choice{};                                 // draft lengths rated, candidate pool
    bool forces_outer_layers = true;                     // forced modules
    std::optional<int> weight_cap = kOfficialWeightCap;  // weight cap; nullopt: none
    SearchInterval interval{};                           // search interval
    // Confidence: the exit looks at the most probable token (paper), not at the drafted one (code).
    bool exits_by_most_probable = false;
    // First search: at the end of the prompt, on its last tokens. Otherwise the whole model drafts
    // until the first search that is due.
    bool starts_on_prompt = false;
};

// Last tokens of the prompt that such a first search looks at.
inline constexpr int kPromptRows = 64;

// Throws when an option is not valid.
PaperOptions read_paper_options(const SpeculationOptions& options);

// The keys of --strategy-options.
std::span<const StrategyOptionInfo> paper_option_infos();

// Counts matrices and embeddings of the whole model, assuming a separate output matrix.
std::int64_t count_parameters(const ModelConfig& config);

}  // namespace knap

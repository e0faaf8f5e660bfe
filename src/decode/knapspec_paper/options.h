// The settings of the published KnapSpec (methods 3.1). Where the paper and its published code
// differ (methods 3.13) a setting chooses; the defaults are the code's, as its run script calls it.
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
    int rounds_of_large = 64;  // of models above kLargeModel parameters

    int for_model(std::int64_t n_parameters) const;
};
inline constexpr std::int64_t kLargeModel = 10'000'000'000;
// The search follows the seventh round of an interval, counted from 0.
inline constexpr int kShortestInterval = 7;
inline constexpr int kLongestInterval = 1'000'000;

struct PaperOptions {
    int draft_max = 10;            // gamma_max
    float exit_confidence = 0.7f;  // a less probable draft is the last; 0: none is

    KnapsackOptions knapsack{};                          // tau; D5, D6, D7
    ChoiceRule choice{};                                 // D1, D2
    bool forces_outer_layers = true;                     // D3
    std::optional<int> weight_cap = kOfficialWeightCap;  // D4; none: no cap
    SearchInterval interval{};                           // D9
    // D10, paper: the exit looks at the likeliest token, not at the drafted one.
    bool exits_by_likeliest = false;
    // D17: a first search at the end of the prompt, on its last tokens; otherwise the whole model
    // drafts until the first search that is due.
    bool starts_on_prompt = false;
};

// Tokens of the prompt that a first search looks at.
inline constexpr int kPromptRows = 64;

// Throws when an option is not valid.
PaperOptions read_paper_options(const SpeculationOptions& options);

// The keys of --strategy-options.
std::span<const StrategyOptionInfo> paper_option_infos();

// Matrices and embeddings of the whole model, a head of its own assumed.
std::int64_t count_parameters(const ModelConfig& config);

}  // namespace knap

// From times of whole passes to the times of their parts.
#pragma once

#include <span>
#include <vector>

#include "search/cost/cost_profile.h"
#include "search/cost/pass_work.h"

namespace knap {

// A pass of one row takes the sum of what it runs and reads.
struct CostParts {
    double fixed_ms = 0;
    double head_ms = 0;
    double cache_row_ms = 0;             // read by one attention
    std::vector<double> attention_ms{};  // [class] without its cache rows
    std::vector<double> mlp_ms{};        // [class]

    // What weights cost: modules, and this much of the head.
    double weights_ms(const PassWork& work, double heads) const;
    double cache_ms(const PassWork& work) const { return cache_row_ms * work.cache_rows; }
};

// What `n_rows` rows make of a pass of one: how much dearer weights and cache rows get.
struct RowFactors {
    int n_rows = 1;
    double weights = 1;
    double cache = 1;
};

// The parts with the least squares of relative errors over the samples of one row; the more a time
// was spread, the less it counts. What the samples leave open stays close to a guess: the time of
// the whole model, shared out by the bytes that a part reads. All parts are positive. The profile
// can be fitted (can_fit()).
CostParts fit_parts(const CostProfile& profile);

// One entry for every number of rows above 1 that was measured, ascending; weights and cache rows
// get dearer alike where the samples do not tell them apart.
std::vector<RowFactors> fit_rows(const CostProfile& profile, const CostParts& parts);

// Between the `measured` numbers of rows (of which there are some) a line, beyond the last the line
// that leads there, as far as it does not fall.
RowFactors factors_at(std::span<const RowFactors> measured, int n_rows);

}  // namespace knap

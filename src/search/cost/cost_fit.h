// Splits the times of whole passes into the times of their parts.
#pragma once

#include <span>
#include <vector>

#include "search/cost/cost_profile.h"
#include "search/cost/pass_work.h"

namespace knap {

// The parts of a pass of one row. Its time is the sum of what it runs and reads.
struct CostParts {
    double fixed_ms = 0;
    double head_ms = 0;
    double cache_row_ms = 0;             // one row, read by one attention
    std::vector<double> attention_ms{};  // [class] without reading cache rows
    std::vector<double> mlp_ms{};        // [class]

    // The time of everything that reads weights: modules, and `heads` times the whole head.
    double weights_ms(const PassWork& work, double heads) const;
    double cache_ms(const PassWork& work) const { return cache_row_ms * work.cache_rows; }
};

// The cost of `n_rows` rows relative to one: factors for weights and for cache rows.
struct RowFactors {
    int n_rows = 1;
    double weights = 1;
    double cache = 1;
};

// Fits the parts to the samples of one row by least squares of relative errors; a sample with a
// larger spread, or of a busy machine, counts less. Parts that the samples leave open stay near a
// guess: the time of the whole model, divided by the bytes that each part reads. All parts are
// positive. Requires can_fit().
CostParts fit_parts(const CostProfile& profile);

// One entry for every measured number of rows above 1, ascending. Where the samples cannot separate
// weights from cache rows, both get the same factor.
std::vector<RowFactors> fit_rows(const CostProfile& profile, const CostParts& parts);

// Interpolates linearly between the `measured` numbers of rows, which must not be empty. Beyond the
// last it continues the last line, unless that falls.
RowFactors factors_at(std::span<const RowFactors> measured, int n_rows);

}  // namespace knap

// What a record of exactness adds up to.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tools/exactness/record.h"

namespace knap {

// Sums over answers.
struct ExactnessCounts {
    std::int64_t n_cases = 0;  // that have such an answer
    std::int64_t n_undrafted =
        0;                      // of these: none of such answers had a draft, so they prove nothing
    std::int64_t n_tokens = 0;  // that are the same
    std::int64_t n_drafted = 0;
    std::int64_t n_accepted = 0;
    std::int64_t n_copied = 0;  // ComparedAnswer
    std::int64_t n_planned = 0;
    std::int64_t n_cascaded = 0;
    std::int64_t n_forced = 0;
    std::int64_t n_differing = 0;  // answers that differ
};

// Counts by name, in the order of first appearance.
using ExactnessRows = std::vector<std::pair<std::string, ExactnessCounts>>;

struct ExactnessSummary {
    ExactnessCounts all;
    ExactnessRows strategies;
    ExactnessRows contenders;  // strategies with their settings
    ExactnessRows models;      // with the kernels that computed them
    // What was drawn: "sampling", "constraint", "cache" and so on, and the values of each.
    std::vector<std::pair<std::string, ExactnessRows>> draws;
    std::vector<CompletedCase> differing;
};

ExactnessSummary summary_of(std::span<const CompletedCase> cases);

}  // namespace knap

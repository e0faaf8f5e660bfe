// Measures in one pass what a plan's acceptance would have been on the most recent tokens
// (docs/methods.md, "Replay"). Every row attends to the target's own keys and values of the rows
// before it, as the first draft of a round does.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "forward/module_plan.h"
#include "search/target_rows.h"

namespace knap {

// The probability that a token drafted from the logits `draft` is accepted with the logits
// `target`: 1 or 0 for greedy decoding, the overlap of the two distributions for sampling.
// `position` is that of the drafted token, one after the row that the logits belong to.
using AgreementRule = std::function<double(
    int position, std::span<const float> draft, std::span<const float> target)>;

struct ReplayResult {
    double agreed = 0;  // sum over the rows
    int n_rows = 0;
};

// Runs the target's rows with `plan` in scratch rows, in as many passes as needed. Without a rule
// it compares choices; with one, the target must have logits. Returns nullopt when cancelled.
std::optional<ReplayResult> replay(Forward& forward,
                                   const Sequence& cache,
                                   const ModulePlan& plan,
                                   const TargetRows& target,
                                   const AgreementRule& rule = {});

}  // namespace knap

// Measures in one pass what a plan's acceptance would have been on the most recent tokens
// (docs/methods.md, "Replay"). Every row attends to the target's own keys and values of the rows
// before it, as the first draft of a round does. A row agrees if the plan would have drafted the
// token that the whole model chose.
#pragma once

#include <optional>
#include <span>

#include "forward/module_plan.h"
#include "search/target_rows.h"

namespace knap {

struct ReplayResult {
    int n_agreed = 0;
    int n_rows = 0;

    double agreement() const { return static_cast<double>(n_agreed) / n_rows; }
};

// Runs the target's rows with `plan` in scratch rows, in as many passes as needed. `choose` is
// empty for the argmax. Returns nullopt when cancelled, or if no row is free.
std::optional<ReplayResult> replay(Forward& forward,
                                   const Sequence& cache,
                                   const ModulePlan& plan,
                                   const TargetRows& target,
                                   const TokenChoice& choose = {});

}  // namespace knap

// A plan found by an earlier search for a model, at some context length (docs/methods.md, "Warm
// start").
#pragma once

#include "forward/module_plan.h"

namespace knap {

struct SavedPlan {
    int n_context = 0;  // at which it was found
    ModulePlan plan;
    double agreed = 0;  // first drafts that the whole model accepted, of n_rows
    int n_rows = 0;
};

}  // namespace knap

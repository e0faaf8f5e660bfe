// Plans that were found good for a model at some context length (methods 3.15, O10).
#pragma once

#include "graph/module_plan.h"

namespace knap {

struct SavedPlan {
    int n_context = 0;  // where it was found
    ModulePlan plan;
    double agreed = 0;  // first drafts that the whole model accepted, of n_rows
    int n_rows = 0;
};

}  // namespace knap

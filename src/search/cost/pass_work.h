// Counts what a pass runs and reads, in the parts that make up its time.
#pragma once

#include <span>
#include <vector>

#include "forward/module_plan.h"
#include "search/cost/cost_profile.h"

namespace knap {

struct PassWork {
    std::vector<int> attentions;  // [class] that run
    // [class] that run: with experts, counted by what they read (ExpertShare::relative)
    std::vector<double> mlps;
    double cache_rows = 0;  // read, summed over all attentions
};

// The work of a pass of `n_rows` rows after `n_context` committed ones.
PassWork pass_work(const ModulePlan& plan, const LayerKinds& layers, int n_context, int n_rows);

// The cache rows that an attention at `level` reads, in a layer whose own window is `own_window`
// (0: none). Reads are rounded up to steps, and a window has room for a round. A window that covers
// the context counts as full attention; a skipped attention reads nothing.
int cache_rows_read(const Level& level, int own_window, int n_context, int n_rows);

}  // namespace knap

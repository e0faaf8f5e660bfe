// What a pass runs and reads, counted in the parts that its time is a sum of.
#pragma once

#include <span>
#include <vector>

#include "graph/module_plan.h"

namespace knap {

struct PassWork {
    std::vector<int> attentions;  // [class] that run
    std::vector<int> mlps;        // [class] that run
    double cache_rows = 0;        // read, of all attentions together
};

// Of `n_rows` rows after `n_context` committed ones.
PassWork pass_work(const ModulePlan& plan,
                   std::span<const int> layer_classes,
                   int n_context,
                   int n_rows);

// Cache rows that an attention at `level` reads. The engine reads in steps, and a window with room
// for a round. A window that covers the context costs what full attention does; a skipped attention
// reads nothing.
int cache_rows_read(const Level& level, int n_context, int n_rows);

}  // namespace knap

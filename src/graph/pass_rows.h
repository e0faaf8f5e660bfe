// The rows of a batch in the order in which a pass computes them: run by run.
#pragma once

#include <span>
#include <vector>

#include "forward/batch.h"
#include "graph/attention/row_sights.h"

namespace knap {

// Everything about the rows that the device needs. Kept from pass to pass for its memory.
struct PassRows {
    std::span<RowRun* const> runs{};
    std::vector<int> first{};  // of each run: its first row of the pass
    int n_rows = 0;
    std::vector<int> logit_rows{};       // rows of the pass, ascending
    std::vector<int> captures{};         // of all runs
    std::vector<std::int32_t> stored{};  // where each row goes in the store

    void assign(std::span<RowRun* const> batch);
    // The runs as attention sees them. Their layouts have to fit.
    void list_task_runs(bool has_windows, std::vector<TaskRun>& task_runs) const;
    const RowRun& run(std::size_t i) const { return *runs[i]; }
    const ForwardRequest& any_request() const { return runs.front()->request; }
};

// The number of rows that a graph is built for, so that passes of similar size share it: few rows
// exactly, more in steps, at most `max_rows`.
int padded_rows(int n_rows, int max_rows);

}  // namespace knap

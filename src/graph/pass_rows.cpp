#include "graph/pass_rows.h"

#include <algorithm>

#include "base/error.h"
#include "base/rounding.h"
#include "kv/sequence.h"

namespace knap {

void PassRows::assign(std::span<RowRun* const> batch) {
    runs = batch;
    first.clear();
    logit_rows.clear();
    captures.clear();
    stored.clear();
    n_rows = 0;
    for (const RowRun* run : runs) {
        first.push_back(n_rows);
        for (const int row : run->request.logit_rows) {
            logit_rows.push_back(n_rows + row);
        }
        for (int row = 0; row < run->n_rows; ++row) {
            stored.push_back(run->sequence->stored_row(run->request.first_row + row));
        }
        captures.insert(captures.end(), run->request.captures.begin(), run->request.captures.end());
        n_rows += run->n_rows;
    }
    if (runs.size() > 1) {
        std::ranges::sort(captures);
        captures.erase(std::unique(captures.begin(), captures.end()), captures.end());
    }
}

void PassRows::list_task_runs(bool has_windows, std::vector<TaskRun>& task_runs) const {
    task_runs.clear();
    for (std::size_t i = 0; i < runs.size(); ++i) {
        const ForwardRequest& request = runs[i]->request;
        const int n_own = runs[i]->n_rows;
        KNAP_ASSERT(is_valid_layout(request.layout, request.first_row, n_own, has_windows),
                    "the layout fits the rows");
        task_runs.push_back({.sequence = runs[i]->sequence,
                             .layout = request.layout,
                             .first_row = request.first_row,
                             .n_rows = n_own,
                             .first = first[i]});
    }
}

int padded_rows(int n_rows, int max_rows) {
    constexpr struct {
        int up_to;
        int step;
    } kSteps[] = {{16, 1}, {64, 4}, {256, 16}, {1 << 30, 32}};
    const auto* at = std::ranges::find_if(kSteps, [&](const auto& s) { return n_rows <= s.up_to; });
    return std::min(round_up(n_rows, at->step), max_rows);
}

}  // namespace knap

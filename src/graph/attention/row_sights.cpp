#include "graph/attention/row_sights.h"

#include <algorithm>

namespace knap {

void RowSights::clear() {
    sights_.clear();
    runs_.clear();
}

// The row of a tree whose path is not at its positions is computed as if it were, so that it equals
// plain decoding.
void RowSights::add(const TaskRun& run, const AttentionScope& scope) {
    for (int row = 0; row < run.n_rows; ++row) {
        RowSight sight{.first_run = static_cast<int>(runs_.size())};
        for_each_visible_run(run.layout, scope, run.first_row, row, [&](int begin, int end) {
            if (begin < end) {
                runs_.push_back({begin, end});
            }
        });
        const auto own = runs_.begin() + sight.first_run;
        std::ranges::sort(own, runs_.end(), {}, &SightRun::begin);
        // Joins runs that touch.
        auto last = own;
        for (auto next = own + 1; next < runs_.end(); ++next) {
            if (next->begin == last->end) {
                last->end = next->end;
            } else {
                *++last = *next;
            }
        }
        runs_.erase(last + 1, runs_.end());
        sight.n_runs = static_cast<int>(runs_.size()) - sight.first_run;
        for (const SightRun& seen : runs(sight)) {
            sight.n_rows += seen.end - seen.begin;
        }
        // A path is at its positions if it is all of the tree up to its end.
        const int end = position_of(run.layout, run.first_row, row) + 1;
        sight.is_scattered = !scope.window && run.layout.kind == AttentionLayout::Kind::tree &&
                             run.first_row + row + 1 != end;
        if (sight.is_scattered && scattered_ == ScatteredRuns::positions) {
            runs_.resize(static_cast<std::size_t>(sight.first_run) + 1);
            runs_.back() = {end - sight.n_rows, end};
            sight.n_runs = 1;
        }
        sights_.push_back(sight);
    }
}

}  // namespace knap

// Which rows of its sequence every row of a pass sees, in the order in which attention sums them.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "forward/attention_layout.h"

namespace knap {

class Sequence;

// The rows of one sequence in a pass.
struct TaskRun {
    const Sequence* sequence = nullptr;
    AttentionLayout layout{};
    int first_row = 0;  // of the sequence
    int n_rows = 0;
    int first = 0;  // row of the pass
};

// What a row sees: rows of its sequence, ascending.
struct RowSight {
    int first_run = 0;
    int n_runs = 0;
    int n_rows = 0;  // of all runs
    // Without a plan's window: the rows of its path are not at their positions in the cache.
    bool is_scattered = false;
};
struct SightRun {
    int begin = 0;
    int end = 0;
};

// The runs of a scattered row: the rows as they are in the cache, or the positions that they stand
// for, which are one run.
enum class ScatteredRuns { rows, positions };

class RowSights {
  public:
    explicit RowSights(ScatteredRuns scattered) : scattered_(scattered) {}
    void clear();
    // Adds the rows of the next run of the pass.
    void add(const TaskRun& run, const AttentionScope& scope);

    const RowSight& of(const TaskRun& run, int row) const {
        return sights_[static_cast<std::size_t>(run.first + row)];
    }
    std::span<const SightRun> runs(const RowSight& sight) const {
        return std::span(runs_).subspan(static_cast<std::size_t>(sight.first_run),
                                        static_cast<std::size_t>(sight.n_runs));
    }

  private:
    ScatteredRuns scattered_;
    std::vector<RowSight> sights_;  // [n_rows]
    std::vector<SightRun> runs_;
};

}  // namespace knap

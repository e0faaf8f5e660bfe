#include "cuda/attention_blocks.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/rounding.h"

namespace knap {
namespace {

constexpr int kLastPart = std::numeric_limits<int>::max();

}  // namespace

void CudaAttentionBlocks::plan(std::span<const TaskRun> runs,
                               std::span<const int> first_pages,
                               const AttentionScope& scope,
                               For kernel,
                               int n_steps) {
    sights_.clear();
    blocks_.clear();
    runs_.clear();
    n_seen_.clear();
    first_seen_.clear();
    merges_ = false;
    n_steps_ = n_steps;
    for (const TaskRun& run : runs) {
        sights_.add(run, {scope.window});
        for (int row = 0; row < run.n_rows; ++row) {
            n_seen_.push_back(sights_.of(run, row).n_rows);
        }
        if (scope.own_window > 0) {
            find_first_seen(run, scope, n_steps > 1 ? n_steps : run.n_rows);
        }
    }
    max_rows_ = choose_rows(runs);
    for (std::size_t i = 0; i < runs.size(); ++i) {
        add_run(runs[i], first_pages[i], kernel);
    }
}

// Rows of a window are the last of what a row sees without it.
void CudaAttentionBlocks::find_first_seen(const TaskRun& run,
                                          const AttentionScope& scope,
                                          int n_rows) {
    const auto count = [&](const AttentionScope& of, int row) {
        int n = 0;
        for_each_visible_run(run.layout, of, run.first_row, row,
                             [&](int begin, int end) { n += std::max(0, end - begin); });
        return n;
    };
    for (int row = 0; row < n_rows; ++row) {
        first_seen_.push_back(count({scope.window}, row) - count(scope, row));
    }
}

// The first part of its context that a row sees.
int CudaAttentionBlocks::first_part(const TaskRun& run, int row) const {
    return first_seen_.empty() ? 0
                               : part_of(first_seen_[static_cast<std::size_t>(run.first + row)]);
}

// The fewest rows of a block with which every part of every block has a processor.
int CudaAttentionBlocks::choose_rows(std::span<const TaskRun> runs) const {
    for (int n_rows = 1; n_rows < room_; n_rows *= 2) {
        int n_items = 0;
        for (const TaskRun& run : runs) {
            const int n_blocks = steps_for(run.n_rows, n_rows);
            const int last = run.n_rows - 1;
            n_items += n_blocks * n_kv_heads_ *
                       (count_parts(sights_.of(run, last).n_rows) - first_part(run, last));
        }
        if (n_items <= n_processors_) {
            return n_rows;
        }
    }
    return room_;
}

// Rows see the same runs, but for how far the last one goes.
bool CudaAttentionBlocks::are_alike(const TaskRun& run, int a, int b) const {
    const auto first = sights_.runs(sights_.of(run, a));
    const auto second = sights_.runs(sights_.of(run, b));
    if (first.size() != second.size() || first.back().begin != second.back().begin) {
        return false;
    }
    return std::ranges::equal(
        first.first(first.size() - 1), second.first(second.size() - 1),
        [](const SightRun& x, const SightRun& y) { return x.begin == y.begin && x.end == y.end; });
}

// Rows that do not lie at their positions share only the parts of the text before the tree. The
// kernel merges parts in order, whichever block they come from.
void CudaAttentionBlocks::add_run(const TaskRun& run, int first_page, For kernel) {
    const bool is_step = kernel == For::step;
    int end_shared = 0;  // parts up to here are those of all rows
    const auto is_scattered = [&](int row) { return sights_.of(run, row).is_scattered; };
    bool has_scattered = false;
    for (int row = 0; row < run.n_rows; ++row) {
        has_scattered = has_scattered || is_scattered(row);
    }
    if (is_step && has_scattered) {
        while (part_begin(end_shared + 1) <= run.layout.context) {
            ++end_shared;
        }
        for (int row = 0; row < run.n_rows; row += max_rows_) {
            add_block(run, first_page, row, std::min(row + max_rows_, run.n_rows), 0, end_shared);
        }
    }
    for (int begin = 0, end = 0; begin < run.n_rows; begin = end) {
        const int most = is_step ? std::min(run.n_rows, begin + max_rows_) : run.n_rows;
        end = begin + 1;
        while (end < most && !is_scattered(begin) && are_alike(run, begin, end)) {
            ++end;
        }
        add_block(run, first_page, begin, end, end_shared, kLastPart);
    }
}

// Rows of the sequence before `sequence_row` that a row sees.
int CudaAttentionBlocks::count_before(const TaskRun& run, int row, int sequence_row) const {
    int n = 0;
    for (const SightRun& seen : sights_.runs(sights_.of(run, row))) {
        n += std::max(0, std::min(seen.end, sequence_row) - seen.begin);
    }
    return n;
}

// No block if no row sees these parts.
void CudaAttentionBlocks::add_block(
    const TaskRun& run, int first_page, int begin, int end, int begin_part, int end_part) {
    int n_seen = 0;
    int first_new = kLastPart;
    int lowest = kLastPart;
    for (int row = begin; row < end; ++row) {
        n_seen = std::max(n_seen, sights_.of(run, row).n_rows);
        first_new = std::min(first_new, count_before(run, row, run.first_row));
        lowest = std::min(lowest, first_part(run, row));
    }
    begin_part = std::max(begin_part, lowest);
    if (begin_part >= end_part) {
        return;
    }
    const CudaBlock block{.first_row = run.first + begin,
                          .n_rows = end - begin,
                          .first_part = begin_part,
                          .end_part = std::min(end_part, count_parts(n_seen)),
                          .first_page = first_page,
                          .first_run = static_cast<int>(runs_.size()),
                          .n_runs = end_part == kLastPart ? sights_.of(run, begin).n_runs : 1,
                          .first_new = first_new,
                          .first_stored = run.first,
                          .n_stored = run.n_rows};
    KNAP_ASSERT(block.first_part < block.end_part, "a block has parts");
    merges_ = merges_ || end_part != kLastPart ||
              count_parts(n_seen + n_steps_ - 1) - block.first_part > 1;
    blocks_.push_back(block);
    int position = 0;
    for (const SightRun& seen :
         sights_.runs(sights_.of(run, begin)).first(static_cast<std::size_t>(block.n_runs))) {
        runs_.push_back({.position = position, .row = seen.begin});
        position += seen.end - seen.begin;
    }
}

}  // namespace knap

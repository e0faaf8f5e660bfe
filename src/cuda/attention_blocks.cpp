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
                               const std::optional<Window>& window,
                               For kernel,
                               int n_steps) {
    sights_.clear();
    blocks_.clear();
    runs_.clear();
    n_seen_.clear();
    merges_ = false;
    for (const TaskRun& run : runs) {
        sights_.add(run, {window});
        for (int row = 0; row < run.n_rows; ++row) {
            const int n_seen = sights_.of(run, row).n_rows;
            n_seen_.push_back(n_seen);
            merges_ = merges_ || count_parts(n_seen + n_steps - 1) > 1;
        }
    }
    max_rows_ = choose_rows(runs);
    for (std::size_t i = 0; i < runs.size(); ++i) {
        add_run(runs[i], first_pages[i], kernel);
    }
}

// The fewest rows of a block with which every part of every block has a processor.
int CudaAttentionBlocks::choose_rows(std::span<const TaskRun> runs) const {
    for (int n_rows = 1; n_rows < room_; n_rows *= 2) {
        int n_items = 0;
        for (const TaskRun& run : runs) {
            const int n_blocks = steps_for(run.n_rows, n_rows);
            n_items += n_blocks * n_kv_heads_ * count_parts(sights_.of(run, run.n_rows - 1).n_rows);
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
    int first_part = 0;
    const auto is_scattered = [&](int row) { return sights_.of(run, row).is_scattered; };
    bool has_scattered = false;
    for (int row = 0; row < run.n_rows; ++row) {
        has_scattered = has_scattered || is_scattered(row);
    }
    if (is_step && has_scattered) {
        while (part_begin(first_part + 1) <= run.layout.context) {
            ++first_part;
        }
        for (int row = 0; row < run.n_rows && first_part > 0; row += max_rows_) {
            add_block(run, first_page, row, std::min(row + max_rows_, run.n_rows), 0, first_part);
        }
    }
    for (int begin = 0, end = 0; begin < run.n_rows; begin = end) {
        const int most = is_step ? std::min(run.n_rows, begin + max_rows_) : run.n_rows;
        end = begin + 1;
        while (end < most && !is_scattered(begin) && are_alike(run, begin, end)) {
            ++end;
        }
        add_block(run, first_page, begin, end, first_part, kLastPart);
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

void CudaAttentionBlocks::add_block(
    const TaskRun& run, int first_page, int begin, int end, int first_part, int end_part) {
    int n_seen = 0;
    int first_new = kLastPart;
    for (int row = begin; row < end; ++row) {
        n_seen = std::max(n_seen, sights_.of(run, row).n_rows);
        first_new = std::min(first_new, count_before(run, row, run.first_row));
    }
    const CudaBlock block{.first_row = run.first + begin,
                          .n_rows = end - begin,
                          .first_part = first_part,
                          .end_part = std::min(end_part, count_parts(n_seen)),
                          .first_page = first_page,
                          .first_run = static_cast<int>(runs_.size()),
                          .n_runs = end_part == kLastPart ? sights_.of(run, begin).n_runs : 1,
                          .first_new = first_new,
                          .first_stored = run.first,
                          .n_stored = run.n_rows};
    KNAP_ASSERT(block.first_part < block.end_part, "a block has parts");
    blocks_.push_back(block);
    int position = 0;
    for (const SightRun& seen :
         sights_.runs(sights_.of(run, begin)).first(static_cast<std::size_t>(block.n_runs))) {
        runs_.push_back({.position = position, .row = seen.begin});
        position += seen.end - seen.begin;
    }
}

}  // namespace knap

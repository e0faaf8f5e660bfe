#include "graph/attention/attention_tasks.h"

#include <algorithm>

#include "base/error.h"
#include "base/rounding.h"
#include "kernels/attention/attention.h"

namespace knap {
namespace {

// A chunk's keys and values are read once for all columns of a task; this weighs as much as the
// arithmetic of a few columns.
constexpr double kReadingCost = 4;

// The kernels take so many columns at a time.
constexpr int kColumnsAtOnce = 6;

}  // namespace

void AttentionTasks::plan(std::span<const TaskRun> runs,
                          const AttentionScope& scope,
                          int n_shares) {
    runs_.assign(runs.begin(), runs.end());
    sights_.clear();
    n_rows_ = 0;
    for (const TaskRun& run : runs_) {
        KNAP_ASSERT(run.first == n_rows_, "runs follow each other");
        sights_.add(run, scope);
        n_rows_ += run.n_rows;
    }
    add_blocks(kMaxAttentionColumns);
    const int n_columns = most_columns();
    const int n_even = even_columns(n_columns, n_shares);
    if (n_even < n_columns) {
        add_blocks(n_even);
    }
    share_out(n_shares);
}

int AttentionTasks::most_columns() const {
    return std::ranges::max(blocks_, {}, &ColumnBlock::n_columns).n_columns;
}

// How many columns a block should have, at most `n_columns`. Shares of a few chunks are uneven, so
// that some threads wait, unless their columns are divided too.
int AttentionTasks::even_columns(int n_columns, int n_shares) const {
    constexpr int kFewParts = 4;  // of a share
    const int n_parts = static_cast<int>(chunks_.size()) * config_.n_kv_heads;
    if (n_shares == 1 || n_parts >= kFewParts * n_shares) {
        return n_columns;
    }
    const auto longest_share = [&](int n) {
        return steps_for(n_parts * steps_for(n_columns, n), n_shares) * (kReadingCost + n);
    };
    int best = n_columns;
    for (int n = round_down(n_columns - 1, kColumnsAtOnce); n > 0; n -= kColumnsAtOnce) {
        best = longest_share(n) < longest_share(best) ? n : best;
    }
    return best;
}

void AttentionTasks::add_blocks(int max_columns) {
    blocks_.clear();
    chunks_.clear();
    for (int run = 0; run < static_cast<int>(runs_.size()); ++run) {
        add_blocks(run, max_columns);
    }
}

void AttentionTasks::add_blocks(int run, int max_columns) {
    const int n_columns = runs_[static_cast<std::size_t>(run)].n_rows * config_.heads_per_kv();
    for (int first = 0; first < n_columns; first += max_columns) {
        ColumnBlock block{.run = run,
                          .first = first,
                          .n_columns = std::min(max_columns, n_columns - first),
                          .first_chunk = static_cast<int>(chunks_.size())};
        add_chunks(block);
        block.cost = kReadingCost + block.n_columns;
        block.cost_before = blocks_.empty() ? 0
                                            : blocks_.back().cost_before +
                                                  blocks_.back().cost * blocks_.back().n_chunks;
        blocks_.push_back(block);
    }
}

// The parts of chunks that a row of the block sees.
void AttentionTasks::add_chunks(ColumnBlock& block) {
    const TaskRun& run = this->run(block);
    const int group = config_.heads_per_kv();
    const int end_row = (block.first + block.n_columns - 1) / group + 1;
    int end = 0;
    for (int row = block.first / group; row < end_row; ++row) {
        end = std::max(end, sight_runs(sight(run, row)).back().end);
    }
    for (int first = 0; first < end; first += kAttentionChunk) {
        int begin_seen = first + kAttentionChunk;
        int end_seen = first;
        for (int row = block.first / group; row < end_row; ++row) {
            for (const SightRun& seen : sight_runs(sight(run, row))) {
                const int begin_here = std::max(seen.begin, first);
                const int end_here = std::min(seen.end, first + kAttentionChunk);
                if (begin_here < end_here) {
                    begin_seen = std::min(begin_seen, begin_here);
                    end_seen = std::max(end_seen, end_here);
                }
            }
        }
        if (begin_seen < end_seen) {
            const int begin = round_down(begin_seen, kAttentionStep);
            chunks_.push_back({begin, round_up(end_seen, kAttentionStep) - begin});
        }
    }
    block.n_chunks = static_cast<int>(chunks_.size()) - block.first_chunk;
}

void AttentionTasks::share_out(int n_shares) {
    const ColumnBlock& last = blocks_.back();
    const double per_head = last.cost_before + last.cost * last.n_chunks;
    const auto n_blocks = static_cast<int>(blocks_.size());
    borders_.assign(1, {});
    shared_.clear();
    std::size_t n_floats = 0;
    for (int share = 1; share < n_shares; ++share) {
        const double target = per_head * config_.n_kv_heads * share / n_shares;
        const int head = std::min(static_cast<int>(target / per_head), config_.n_kv_heads - 1);
        const double within = target - per_head * head;
        const auto after = std::ranges::upper_bound(blocks_, within, {}, &ColumnBlock::cost_before);
        const ColumnBlock& block = *(after - 1);
        const int chunk = std::clamp(
            static_cast<int>((within - block.cost_before) / block.cost + 0.5), 0, block.n_chunks);
        ShareBorder border{.task = head * n_blocks + static_cast<int>(after - blocks_.begin()) - 1,
                           .chunk = chunk};
        if (border.chunk == block.n_chunks) {
            border = {.task = border.task + 1, .chunk = 0};
        }
        const ShareBorder& before = borders_.back();
        const bool is_empty = border.task == before.task && border.chunk == before.chunk;
        if (border.chunk > 0 && !is_empty) {
            if (shared_.empty() || shared_.back().task != border.task) {
                shared_.push_back({.task = border.task, .n_parts = 1, .offset = n_floats});
                n_floats += partial_size(config_.head_dim) *
                            static_cast<std::size_t>(block.n_columns) *
                            static_cast<std::size_t>(block.n_chunks);
            }
            ++shared_.back().n_parts;
        }
        borders_.push_back(border);
    }
    borders_.push_back({.task = n_tasks(), .chunk = 0});
    if (partials_.size() < n_floats) {
        partials_.resize(n_floats);
    }
    if (n_counters_ < shared_.size()) {
        n_counters_ = static_cast<std::size_t>(n_shares);
        n_done_ = std::make_unique<std::atomic<int>[]>(n_counters_);
    }
    for (std::size_t i = 0; i < shared_.size(); ++i) {
        n_done_[i].store(0, std::memory_order_relaxed);
    }
}

const AttentionTasks::SharedTask& AttentionTasks::shared(int task) const {
    return *std::ranges::lower_bound(shared_, task, {}, &SharedTask::task);
}

float* AttentionTasks::partials(int task) const {
    return partials_.data() + shared(task).offset;
}

bool AttentionTasks::finish_part(int task) const {
    const SharedTask& one = shared(task);
    std::atomic<int>& n_done = n_done_[static_cast<std::size_t>(&one - shared_.data())];
    if (n_done.fetch_add(1, std::memory_order_acq_rel) + 1 < one.n_parts) {
        return false;
    }
    n_done.store(0, std::memory_order_relaxed);  // for the next layer
    return true;
}

}  // namespace knap

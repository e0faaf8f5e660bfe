// Plans the attention of one pass for our CPU kernel: which columns meet which chunks of the cache,
// and how the work is divided. A plan serves every layer of the pass that attends alike, so a graph
// does not depend on the sequences, contexts and layouts in a pass.
//
// A column of a KV head is one of its query heads in one row. A task is up to kMaxAttentionColumns
// columns of one KV head and one run, over all chunks that one of them sees; it has fewer columns
// where there are too few chunks to share out evenly. The chunks of all tasks are divided into
// contiguous shares of about equal cost, for the threads to compute. A task that is in two or more
// shares keeps the partial result of every chunk, and whoever finishes last merges them in order.
// So the result of a row is the same however the work is shared.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "graph/attention/row_sights.h"
#include "kv/sequence.h"
#include "model/config.h"

namespace knap {

// Rows of a sequence within one chunk that some row of a block of columns sees.
struct ChunkSpan {
    int first = 0;  // a multiple of kAttentionStep
    int count = 0;  // likewise
};

// Columns of one run, for every KV head.
struct ColumnBlock {
    int run = 0;
    int first = 0;  // column of the run
    int n_columns = 0;
    int first_chunk = 0;  // in chunks()
    int n_chunks = 0;
    double cost = 0;         // of one chunk
    double cost_before = 0;  // of earlier blocks
};

// Where a share begins.
struct ShareBorder {
    int task = 0;
    int chunk = 0;  // of the task
};

class AttentionTasks {
  public:
    explicit AttentionTasks(const ModelConfig& config) : config_(config) {}

    // Plans a pass, in `n_shares` shares. The runs' layouts must outlive the pass.
    void plan(std::span<const TaskRun> runs, const AttentionScope& scope, int n_shares);

    const ModelConfig& config() const { return config_; }
    int n_rows() const { return n_rows_; }  // of the pass, without padding
    int n_tasks() const { return static_cast<int>(blocks_.size()) * config_.n_kv_heads; }
    int kv_head(int task) const { return task / static_cast<int>(blocks_.size()); }
    const ColumnBlock& block(int task) const {
        return blocks_[static_cast<std::size_t>(task) % blocks_.size()];
    }
    const TaskRun& run(const ColumnBlock& block) const {
        return runs_[static_cast<std::size_t>(block.run)];
    }
    const ChunkSpan& chunk(const ColumnBlock& block, int i) const {
        return chunks_[static_cast<std::size_t>(block.first_chunk + i)];
    }
    const RowSight& sight(const TaskRun& run, int row) const { return sights_.of(run, row); }
    std::span<const SightRun> sight_runs(const RowSight& sight) const {
        return sights_.runs(sight);
    }

    int n_shares() const { return static_cast<int>(borders_.size()) - 1; }
    const ShareBorder& share_begin(int share) const {
        return borders_[static_cast<std::size_t>(share)];
    }
    const ShareBorder& share_end(int share) const {
        return borders_[static_cast<std::size_t>(share) + 1];
    }

    // --- a task of which several shares have a part ---
    // Its partial results: [partial_size, n_columns, n_chunks].
    float* partials(int task) const;
    // Counts a part as done. True for the last one, after which they have to be merged.
    bool finish_part(int task) const;

  private:
    struct SharedTask {
        int task = 0;
        int n_parts = 0;
        std::size_t offset = 0;  // in partials_
    };
    int most_columns() const;
    int even_columns(int n_columns, int n_shares) const;
    void add_blocks(int max_columns);
    void add_blocks(int run, int max_columns);
    void add_chunks(ColumnBlock& block);
    void share_out(int n_shares);
    const SharedTask& shared(int task) const;

    const ModelConfig& config_;
    int n_rows_ = 0;
    std::vector<TaskRun> runs_;
    RowSights sights_{ScatteredRuns::positions};
    std::vector<ColumnBlock> blocks_;
    std::vector<ChunkSpan> chunks_;
    std::vector<ShareBorder> borders_;  // [n_shares + 1]
    std::vector<SharedTask> shared_;
    mutable std::vector<float> partials_;
    std::unique_ptr<std::atomic<int>[]> n_done_;  // per shared task: parts
    std::size_t n_counters_ = 0;
};

}  // namespace knap

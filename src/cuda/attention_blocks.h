// Plans the attention of one pass for the CUDA kernels: which rows read keys and values together,
// and where in the cache the positions are that they see.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "graph/attention/row_sights.h"
#include "kernels/cuda/pass.h"
#include "model/config.h"

namespace knap {

class CudaAttentionBlocks {
  public:
    // For passes in the step kernel, blocks share the parts of a row's context. A block has few
    // rows if there are processors for all blocks, else as many as it takes at once. Elsewhere
    // every row is in one block.
    enum class For { step, prefill };

    CudaAttentionBlocks(const ModelConfig& config, int n_processors)
        : n_kv_heads_(config.n_kv_heads),
          n_processors_(n_processors),
          room_(std::max(1, max_cuda_columns(config.head_dim) / config.heads_per_kv())) {}

    // `first_pages[i]` is where the pages of run i begin in the table of all pages. With `n_steps`
    // above 1 the only row is the first of so many in a chain.
    //
    // What a row sees is counted without the layers' own window, which hides the first of these
    // positions: so rows that a window shows different positions still share a block.
    void plan(std::span<const TaskRun> runs,
              std::span<const int> first_pages,
              const AttentionScope& scope,
              For kernel,
              int n_steps = 1);

    std::span<const CudaBlock> blocks() const { return blocks_; }
    std::span<const CudaRun> runs() const { return runs_; }
    std::span<const int> n_seen() const { return n_seen_; }
    // Of each row, or step of a chain; empty if the layers have no window.
    std::span<const int> first_seen() const { return first_seen_; }
    // Whether some rows' context is in several parts.
    bool merges() const { return merges_; }

  private:
    void find_first_seen(const TaskRun& run, const AttentionScope& scope, int n_rows);
    int first_part(const TaskRun& run, int row) const;
    int choose_rows(std::span<const TaskRun> runs) const;
    void add_run(const TaskRun& run, int first_page, For kernel);
    // A block of rows [begin, end) of the run over the parts that they see, from `begin_part` on,
    // up to `end_part`.
    void add_block(
        const TaskRun& run, int first_page, int begin, int end, int begin_part, int end_part);
    bool are_alike(const TaskRun& run, int a, int b) const;
    int count_before(const TaskRun& run, int row, int sequence_row) const;

    int n_kv_heads_;
    int n_processors_;
    int room_;          // rows that a block takes
    int max_rows_ = 1;  // that it gets in this pass
    int n_steps_ = 1;
    RowSights sights_{ScatteredRuns::rows};
    std::vector<CudaBlock> blocks_;
    std::vector<CudaRun> runs_;
    std::vector<int> n_seen_;
    std::vector<int> first_seen_;
    bool merges_ = false;
};

}  // namespace knap

// What the runs of a pass want of their rows, on its way to them: logits, choices, the best tokens
// of rows, captured streams and cosines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cuda/growing_memory.h"
#include "cuda/result_arena.h"
#include "graph/pass_results.h"
#include "graph/pass_rows.h"
#include "kernels/cuda/pass.h"

namespace knap {

class RowResults {
  public:
    // `max_step_rows`: of a pass in the step kernel.
    RowResults(const ModelConfig& config, int max_step_rows)
        : config_(config), max_step_rows_(max_step_rows) {}

    // Before a pass over these rows, which must stay as they are until deliver().
    void begin(const PassRows& rows);
    bool has_choices() const { return chooses_; }
    // How many rows get logits on the device: in the step kernel all, else those that were asked
    // for.
    std::size_t n_logit_rows() const;

    // After the pass has started: lists the best tokens of rows, if somebody wants them.
    void list_best(const float* logits, CudaStream& stream);
    // Gives the runs their results. Streams that stay on the device are not captured. Returns how
    // many bytes came over.
    std::size_t deliver(const CudaBuffers& buffers,
                        bool streams_stay,
                        std::span<const float> cosines,
                        CudaStream& stream);

    std::size_t bytes() const { return lists_.bytes(); }  // on the device

  private:
    std::size_t place_of(std::size_t logit_row) const;
    std::size_t take_logits(const float* logits);
    BestTokens read_best(std::span<const std::uint64_t> lists);

    const ModelConfig& config_;
    int max_step_rows_;
    const PassRows* rows_ = nullptr;
    bool has_logits_ = false;  // wanted by some run
    bool chooses_ = false;     // likewise
    int n_best_ = 0;           // the most that a run wants
    GrowingMemory<std::uint64_t> lists_{"lists of the best tokens"};
    ResultArena arena_;
    std::vector<std::span<const float>> captures_;
    std::vector<RankKey> best_;
    std::vector<int> best_ends_;
};

}  // namespace knap

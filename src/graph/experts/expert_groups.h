// The rows of a pass grouped by the experts that they use, so that the weights of an expert are
// read once for all of them.
#pragma once

#include <span>
#include <vector>

#include "graph/experts/expert_choice.h"

namespace knap {

// Some slots of one expert. A slot is a row with one of its experts; those of an expert follow each
// other, in the order of their rows.
struct ExpertBlock {
    int expert = 0;
    int first_slot = 0;
    int n_slots = 0;
};

class ExpertGroups {
  public:
    // The most slots of a block: their inputs and results stay in a core's cache.
    static constexpr int kMaxSlots = 64;

    // `chosen` [n_used, n_rows] has ids below `n_experts`.
    void assign(std::span<const ChosenExpert> chosen, int n_used, int n_experts);

    // The most blocks that so many slots can be in.
    static int most_blocks(int n_slots, int n_experts);

    int n_slots() const { return static_cast<int>(rows_.size()); }
    std::span<const ExpertBlock> blocks() const { return blocks_; }
    int row(int slot) const { return rows_[static_cast<std::size_t>(slot)]; }
    float weight(int slot) const { return weights_[static_cast<std::size_t>(slot)]; }
    int n_used() const { return n_used_; }
    // Where a row is with its expert of a rank.
    int slot(int row, int rank) const {
        return slots_[static_cast<std::size_t>(row) * static_cast<std::size_t>(n_used_) +
                      static_cast<std::size_t>(rank)];
    }

  private:
    int n_used_ = 0;
    std::vector<int> ends_;       // [expert] of its slots, while they are filled
    std::vector<int> slots_;      // [n_used, n_rows]
    std::vector<int> rows_;       // [slot]
    std::vector<float> weights_;  // [slot]
    std::vector<ExpertBlock> blocks_;
};

}  // namespace knap

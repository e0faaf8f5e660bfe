// Groups the attentions of a pass that attend to the same rows: those at `full`, and those of each
// window. A group shares its blocks and its masks.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "forward/attention_blocks.h"
#include "forward/module_plan.h"

namespace knap {

struct AttentionGroup {
    std::optional<Window> window{};  // none: full attention
    // Run by run; empty if no attention of the pass is in the group, or our kernel runs.
    std::vector<AttentionBlock> blocks{};
    std::vector<int> runs{};  // of each block: the run that its rows belong to
};

// The rows of one run, for cut().
struct RunCut {
    BlockCut rows{};
    int context = 0;  // the rows follow at least so many
    int first = 0;    // row of the pass
    PageId page = 0;
};

inline constexpr int kMaxGroups = 1 + kMaxWindows;
inline constexpr int kNoGroup = -1;  // for a skipped attention

class AttentionGroups {
  public:
    // Groups the attentions of layers [entry_layer, exit_layer). Forgets earlier groups but keeps
    // their memory.
    void assign(const ModulePlan& plan, int entry_layer, int exit_layer);
    // Splits the rows of every run into blocks, for each group.
    void cut(std::span<const RunCut> runs);
    // Turns each block, which must be the only one of its group, into a block of a single row that
    // reads the same cache rows: a step of a chain over the rows.
    void narrow_to_one_row(const BlockRules& rules);

    // The index of the group of an attention at `level`, or kNoGroup.
    int group_of(const Level& level) const;
    // Full attention first, then windows in layer order.
    std::span<const AttentionGroup> groups() const { return std::span(groups_).first(n_groups_); }
    bool has_windows() const { return n_groups_ > 1; }
    bool has_full() const { return has_full_; }
    bool has_any() const { return has_full_ || has_windows(); }
    std::size_t n_mask_entries() const;  // of all blocks

  private:
    std::array<AttentionGroup, kMaxGroups> groups_{};
    std::size_t n_groups_ = 1;
    bool has_full_ = false;
};

}  // namespace knap

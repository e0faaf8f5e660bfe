// Groups the attentions of a pass that attend to the same rows: those at `full`, and those of each
// window, apart for layers that have a window of their own. A group shares its blocks and its
// masks.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "forward/attention_blocks.h"
#include "forward/attention_layout.h"
#include "forward/module_plan.h"
#include "model/config.h"

namespace knap {

struct AttentionGroup {
    std::optional<Window> window{};  // of the plan; none: full attention
    int own_window = 0;              // of the layers; 0: none
    // Run by run; empty if no attention of the pass is in the group, or our kernel runs.
    std::vector<AttentionBlock> blocks{};
    std::vector<int> runs{};  // of each block: the run that its rows belong to

    AttentionScope scope() const { return {window, own_window}; }
};

// The rows of one run, for cut().
struct RunCut {
    BlockCut rows{};
    int context = 0;  // the rows follow at least so many
    int first = 0;    // row of the pass
    PageId page = 0;
};

// Of a model whose layers have no windows of their own.
inline constexpr int kMaxPlanGroups = 1 + kMaxWindows;
inline constexpr int kMaxGroups = 2 * kMaxPlanGroups;
inline constexpr int kNoGroup = -1;  // for a skipped attention

class AttentionGroups {
  public:
    // Groups the attentions of layers [entry_layer, exit_layer) of a model with these layers, of
    // which windows have one length; empty: none has a window. Forgets earlier groups but keeps
    // their memory.
    void assign(const ModulePlan& plan,
                int entry_layer,
                int exit_layer,
                std::span<const LayerSpec> layers = {});
    // Splits the rows of every run into blocks, for each group.
    void cut(std::span<const RunCut> runs);
    // Turns each block, which must be the only one of its group, into a block of a single row that
    // reads the same cache rows: a step of a chain over the rows.
    void narrow_to_one_row(const BlockRules& rules);

    // The index of the group of an attention at `level` in a layer with such a window, or
    // kNoGroup.
    int group_of(const Level& level, int own_window = 0) const;
    // Full attention first, then windows in layer order.
    std::span<const AttentionGroup> groups() const { return std::span(groups_).first(n_groups_); }
    bool has_windows() const;                    // of the plan
    bool has_full() const { return has_full_; }  // in a layer without a window
    bool has_any() const { return has_full_ || n_groups_ > 1; }
    std::size_t n_mask_entries() const;  // of all blocks

  private:
    std::array<AttentionGroup, kMaxGroups> groups_{};
    std::size_t n_groups_ = 1;
    bool has_full_ = false;
};

}  // namespace knap

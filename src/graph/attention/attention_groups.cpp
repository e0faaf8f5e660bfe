#include "graph/attention/attention_groups.h"

#include <algorithm>

#include "base/error.h"

namespace knap {

void AttentionGroups::assign(const ModulePlan& plan,
                             int entry_layer,
                             int exit_layer,
                             std::span<const LayerSpec> layers) {
    n_groups_ = 1;
    has_full_ = false;
    groups_[0].blocks.clear();
    for (int layer = entry_layer; layer < exit_layer; ++layer) {
        const Level& level = plan.level(layer, Module::attention);
        const int own_window = layers.empty() ? 0 : layers[static_cast<std::size_t>(layer)].window;
        has_full_ = has_full_ || (level == Level::full && own_window == 0);
        if (level != Level::skip && group_of(level, own_window) == kNoGroup) {
            KNAP_ASSERT(n_groups_ < groups_.size(), "whoever makes plans has counted the windows");
            groups_[n_groups_] = {.own_window = own_window};
            if (level.kind == Level::Kind::window) {
                groups_[n_groups_].window = level.window;
            }
            ++n_groups_;
        }
    }
}

void AttentionGroups::cut(std::span<const RunCut> runs) {
    std::vector<AttentionBlock> blocks;
    for (std::size_t i = 0; i < n_groups_; ++i) {
        AttentionGroup& group = groups_[i];
        group.blocks.clear();
        group.runs.clear();
        if (i == 0 && !has_full_) {
            continue;
        }
        for (const RunCut& run : runs) {
            if (group.window) {
                cut_into_window_blocks(run.rows, *group.window, run.context, blocks);
            } else if (group.own_window > 0) {
                cut_into_own_window_blocks(run.rows, group.own_window, run.context, blocks);
            } else {
                cut_into_blocks(run.rows, blocks);
            }
            for (AttentionBlock& block : blocks) {
                block.first += run.first;
                block.page = run.page;
                group.blocks.push_back(block);
                group.runs.push_back(static_cast<int>(&run - runs.data()));
            }
        }
    }
}

void AttentionGroups::narrow_to_one_row(const BlockRules& rules) {
    for (AttentionGroup& group : std::span(groups_).first(n_groups_)) {
        KNAP_ASSERT(group.blocks.size() <= 1, "only passes that are one block are chained");
        for (AttentionBlock& block : group.blocks) {
            block.n_rows = 1;
            const bool is_exact = rules.exact_rows > 0 && !group.window;
            block.n_padding =
                is_exact ? rules.exact_padding(1, block.n_kv) : rules.padding(1, block.n_kv);
        }
    }
}

int AttentionGroups::group_of(const Level& level, int own_window) const {
    if (level == Level::full && own_window == 0) {
        return 0;
    }
    for (std::size_t i = 1; i < n_groups_; ++i) {
        const std::optional<Window>& window = groups_[i].window;
        const Level of_group =
            window ? Level::windowed(window->sinks, window->recent) : Level::full;
        if (level == of_group && own_window == groups_[i].own_window) {
            return static_cast<int>(i);
        }
    }
    return kNoGroup;
}

bool AttentionGroups::has_windows() const {
    return std::ranges::any_of(
        groups(), [](const AttentionGroup& group) { return group.window.has_value(); });
}

std::size_t AttentionGroups::n_mask_entries() const {
    std::size_t n_entries = 0;
    for (const AttentionGroup& group : groups()) {
        for (const AttentionBlock& block : group.blocks) {
            n_entries += block.mask_size();
        }
    }
    return n_entries;
}

}  // namespace knap

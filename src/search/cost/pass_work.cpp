#include "search/cost/pass_work.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "knap/types.h"

#include "base/error.h"
#include "forward/attention_blocks.h"

namespace knap {

namespace {

// Larger than any context. Rounding up to steps would stop at the end of the cache, which is not
// known here and matters by less than a step.
constexpr int kNoCapacity = 1 << 30;

}  // namespace

int cache_rows_read(const Level& level, int own_window, int n_context, int n_rows) {
    if (level == Level::skip) {
        return 0;
    }
    KNAP_ASSERT(n_context >= 0 && n_rows >= 1 && n_rows <= kMaxUbatch, "rows of one pass");
    // With the default rules attention holds no scores, and a pass is one block.
    const BlockCut cut{.first_row = n_context, .n_rows = n_rows, .capacity = kNoCapacity};
    std::vector<AttentionBlock> blocks;
    if (own_window > 0) {
        cut_into_own_window_blocks(cut, own_window, n_context, blocks);
    } else {
        cut_into_blocks(cut, blocks);
    }
    const int n_full = blocks.front().n_kv;
    if (level.kind != Level::Kind::window || level.window.n_rows() >= n_context) {
        return n_full;
    }
    cut_into_window_blocks(cut, level.window, n_context, blocks);
    return own_window > 0 ? std::min(n_full, blocks.front().n_kv) : blocks.front().n_kv;
}

PassWork pass_work(const ModulePlan& plan, const LayerKinds& layers, int n_context, int n_rows) {
    const auto n_classes =
        static_cast<std::size_t>(layers.classes.empty() ? 0 : std::ranges::max(layers.classes) + 1);
    PassWork work{.attentions = std::vector<int>(n_classes),
                  .mlps = std::vector<double>(n_classes)};
    // Neighbouring layers often have the same level.
    std::optional<std::pair<Level, int>> last_seen;  // with the layer's window
    int n_read = 0;
    for (int layer = 0; layer < plan.n_layers(); ++layer) {
        const auto c = static_cast<std::size_t>(layers.classes[static_cast<std::size_t>(layer)]);
        const Level& attention = plan.level(layer, Module::attention);
        const std::pair seen(attention, layers.window(layer));
        if (last_seen != seen) {
            last_seen = seen;
            n_read = cache_rows_read(attention, seen.second, n_context, n_rows);
        }
        work.cache_rows += n_read;
        work.attentions[c] += plan.runs(layer, Module::attention) ? 1 : 0;
        if (plan.runs(layer, Module::mlp)) {
            work.mlps[c] +=
                layers.expert_share(c).relative(plan.level(layer, Module::mlp).n_experts, n_rows);
        }
    }
    return work;
}

}  // namespace knap

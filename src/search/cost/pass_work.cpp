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

int cache_rows_read(const Level& level, int n_context, int n_rows) {
    if (level == Level::skip) {
        return 0;
    }
    KNAP_ASSERT(n_context >= 0 && n_rows >= 1 && n_rows <= kMaxUbatch, "rows of one pass");
    // With the default rules attention holds no scores, and a pass is one block.
    const BlockCut cut{.first_row = n_context, .n_rows = n_rows, .capacity = kNoCapacity};
    std::vector<AttentionBlock> blocks;
    if (level.kind == Level::Kind::window && level.window.n_rows() < n_context) {
        cut_into_window_blocks(cut, level.window, n_context, blocks);
    } else {
        cut_into_blocks(cut, blocks);
    }
    return blocks.front().n_kv;
}

PassWork pass_work(const ModulePlan& plan,
                   std::span<const int> layer_classes,
                   int n_context,
                   int n_rows) {
    const auto n_classes =
        static_cast<std::size_t>(layer_classes.empty() ? 0 : std::ranges::max(layer_classes) + 1);
    PassWork work{.attentions = std::vector<int>(n_classes), .mlps = std::vector<int>(n_classes)};
    // Neighbouring layers often have the same level.
    std::optional<std::pair<Level, int>> last_read;
    for (int layer = 0; layer < plan.n_layers(); ++layer) {
        const auto c = static_cast<std::size_t>(layer_classes[static_cast<std::size_t>(layer)]);
        const Level& attention = plan.level(layer, Module::attention);
        if (!last_read || last_read->first != attention) {
            last_read.emplace(attention, cache_rows_read(attention, n_context, n_rows));
        }
        work.cache_rows += last_read->second;
        work.attentions[c] += plan.runs(layer, Module::attention) ? 1 : 0;
        work.mlps[c] += plan.runs(layer, Module::mlp) ? 1 : 0;
    }
    return work;
}

}  // namespace knap

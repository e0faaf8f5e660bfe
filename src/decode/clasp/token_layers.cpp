#include "decode/clasp/token_layers.h"

#include <algorithm>

#include "base/error.h"
#include "forward/forward.h"
#include "kv/sequence.h"
#include "model/config.h"
#include "search/target_rows.h"

namespace knap {

TokenLayers::TokenLayers(Forward& forward,
                         const Sequence& cache,
                         std::span<const float> target,
                         int row)
    : forward_(forward),
      cache_(cache),
      target_(target),
      row_(row),
      n_embd_(static_cast<std::size_t>(forward.config().n_embd)) {
    KNAP_ASSERT(scratch_rows(forward, cache) > 0, "there is a scratch row");
}

int TokenLayers::n_layers() const {
    return forward_.config().n_layers;
}

std::span<const float> TokenLayers::target(int layer) const {
    return target_.subspan(static_cast<std::size_t>(layer) * n_embd_, n_embd_);
}

std::span<const float> TokenLayers::run(int layer, std::span<const float> states) {
    const int capture = 2 * (layer + 1);
    const std::size_t step = n_embd_ * static_cast<std::size_t>(scratch_rows(forward_, cache_));
    results_.clear();
    for (std::size_t first = 0; first < states.size(); first += step) {
        const ForwardResult result = forward_.run({
            .hidden = states.subspan(first, std::min(step, states.size() - first)),
            .first_row = cache_.committed(),
            .layout = {.kind = AttentionLayout::Kind::branches, .context = row_, .branch_rows = 1},
            .entry_layer = layer,
            .exit_layer = layer + 1,
            .captures = std::span(&capture, 1),
            .kind = PassKind::search,
        });
        if (!result.is_complete) {
            return {};
        }
        const std::span<const float> captured = result.captures.front();
        results_.insert(results_.end(), captured.begin(), captured.end());
    }
    return results_;
}

}  // namespace knap

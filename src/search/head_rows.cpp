#include "search/head_rows.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "graph/forward.h"
#include "model/config.h"

namespace knap {

bool visit_head_rows(Forward& forward,
                     std::span<const float> hidden,
                     const std::function<void(std::span<const float> logits)>& visit) {
    const auto n_embd = static_cast<std::size_t>(forward.config().n_embd);
    const auto step = static_cast<std::size_t>(std::min(kReservedLogitRows, forward.max_rows(0)));
    std::vector<int> rows(step);
    std::iota(rows.begin(), rows.end(), 0);
    const std::size_t n_rows = hidden.size() / n_embd;
    for (std::size_t first = 0; first < n_rows; first += step) {
        const std::size_t count = std::min(step, n_rows - first);
        // No layer runs, so that nothing is written to the cache row that the pass names.
        const ForwardResult result = forward.run({
            .hidden = hidden.subspan(first * n_embd, count * n_embd),
            .first_row = 0,
            .entry_layer = forward.config().n_layers,
            .logit_rows = std::span(rows).first(count),
        });
        if (!result.is_complete) {
            return false;
        }
        const std::size_t n_vocab = result.logits.size() / count;
        for (std::size_t row = 0; row < count; ++row) {
            visit(result.logits.subspan(row * n_vocab, n_vocab));
        }
    }
    return true;
}

}  // namespace knap

#include "decode/advance.h"

#include <algorithm>

#include "base/error.h"
#include "graph/forward.h"
#include "kv/kv_cache.h"

namespace knap {

std::optional<std::span<const float>> advance(Forward& forward,
                                              KvCache& cache,
                                              std::span<const Token> tokens,
                                              const std::function<void(int n_rows)>& on_progress) {
    const int n_tokens = static_cast<int>(tokens.size());
    KNAP_ASSERT(cache.committed() < n_tokens, "there is a row to compute");
    ForwardResult result;
    while (cache.committed() < n_tokens) {
        const int first_row = cache.committed();
        const int n_rows = std::min(forward.max_rows(first_row), n_tokens - first_row);
        const bool is_last = first_row + n_rows == n_tokens;
        const int last_row = n_rows - 1;
        result = forward.run({
            .tokens = tokens.subspan(static_cast<std::size_t>(first_row),
                                     static_cast<std::size_t>(n_rows)),
            .first_row = first_row,
            .logit_rows = std::span(&last_row, is_last ? 1 : 0),
        });
        if (!result.is_complete) {
            return std::nullopt;
        }
        cache.commit(first_row + n_rows);
        if (on_progress) {
            on_progress(cache.committed());
        }
    }
    return result.logits;
}

}  // namespace knap

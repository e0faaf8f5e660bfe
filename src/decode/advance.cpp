#include "decode/advance.h"

#include <algorithm>

#include "base/error.h"
#include "kv/sequence.h"

namespace knap {

ForwardResult advance_once(Forward& forward, Sequence& cache, std::span<const Token> tokens) {
    const int n_tokens = static_cast<int>(tokens.size());
    KNAP_ASSERT(cache.committed() < n_tokens, "there is a row to compute");
    const int first_row = cache.committed();
    const int n_rows = std::min(forward.max_rows(first_row), n_tokens - first_row);
    const bool is_last = first_row + n_rows == n_tokens;
    const int last_row = n_rows - 1;
    ForwardResult result = forward.run({
        .tokens =
            tokens.subspan(static_cast<std::size_t>(first_row), static_cast<std::size_t>(n_rows)),
        .first_row = first_row,
        .logit_rows = std::span(&last_row, is_last ? 1 : 0),
        .kind = n_rows > 1 ? PassKind::prompt : PassKind::decode,
    });
    if (result.is_complete) {
        cache.commit(first_row + result.n_rows);
    }
    return result;
}

std::optional<std::span<const float>> advance(Forward& forward,
                                              Sequence& cache,
                                              std::span<const Token> tokens,
                                              const std::function<void(int n_rows)>& on_progress) {
    ForwardResult result;
    do {
        result = advance_once(forward, cache, tokens);
        if (!result.is_complete) {
            return std::nullopt;
        }
        if (on_progress) {
            on_progress(cache.committed());
        }
    } while (cache.committed() < static_cast<int>(tokens.size()));
    return result.logits;
}

}  // namespace knap

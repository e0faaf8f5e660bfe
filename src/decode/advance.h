// Bringing the cache up to a text: the whole model over every token that has no row yet. A prompt
// is many rows at once; a step of plain decoding is the case of one.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "knap/types.h"

namespace knap {

class Forward;
class KvCache;

// Computes and commits rows [cache.committed(), tokens.size()) in passes as large as memory allows,
// and gives the logits that follow the last token, valid until the next pass. At least one row must
// be missing. `on_progress` (may be empty) hears of every finished pass. Nullopt: cancelled; the
// passes that finished stay committed.
std::optional<std::span<const float>> advance(
    Forward& forward,
    KvCache& cache,
    std::span<const Token> tokens,
    const std::function<void(int n_rows)>& on_progress = {});

}  // namespace knap

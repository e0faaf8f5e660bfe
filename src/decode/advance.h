// Brings the cache up to date with a text: runs the whole model over every token that has no row
// yet. A prompt takes many rows per pass; a step of plain decoding takes one.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "knap/types.h"

#include "forward/forward.h"

namespace knap {

class Sequence;

// Computes and commits the next rows of `tokens`, at least one of which must be missing, in one
// pass. The logits of the result are those after the last token if its row was among them.
ForwardResult advance_once(Forward& forward, Sequence& cache, std::span<const Token> tokens);

// Computes and commits rows [cache.committed(), tokens.size()) in passes as large as memory allows.
// At least one row must be missing. Returns the logits after the last token, valid until the next
// pass, or nullopt when cancelled; passes that finished stay committed. `on_progress` (may be
// empty) is called after every pass with the number of committed rows.
std::optional<std::span<const float>> advance(
    Forward& forward,
    Sequence& cache,
    std::span<const Token> tokens,
    const std::function<void(int n_rows)>& on_progress = {});

}  // namespace knap

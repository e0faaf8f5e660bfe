// Verifies that an engine's devices are batch-invariant: ggml chooses kernels by the kind of
// device, so the engine cannot know.
#pragma once

namespace knap {

class Forward;

// Runs passes of 2 to `n_rows` rows at the beginning of the cache, in which nothing may be
// committed. Returns true if every row is bit-identical to a single-row pass.
bool is_batch_invariant(Forward& forward, int n_rows);

}  // namespace knap

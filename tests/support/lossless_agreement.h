// Compares every strategy on one engine with plain decoding, up to the near ties that rounding
// explains. The checks are the same for every device: a GPU, or a worker that stands in for one.
#pragma once

#include "knap/knap.h"

namespace knap::test {

struct LosslessExpectation {
    // Whether chains are bit-identical to plain decoding, so that any divergence is a fault. Trees
    // may diverge at near ties in any case.
    bool has_exact_chains = true;
    int n_predict = 64;
};

// Runs every strategy on three prompts, greedily and sampled. Fails the test
// - where a text diverges from plain decoding at a gap above near_tie_bound() of the engine's
//   measured error (tools/check/verification_error.h);
// - where that error exceeds what rounding the factors of products explains
//   (support/rounding_error.h), so that a broken kernel cannot widen its own bound.
void expect_lossless(const RuntimeConfig& config, const LosslessExpectation& expected);

}  // namespace knap::test

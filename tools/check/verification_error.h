// How far the logits of verifications are from those of plain decoding on the same text. Passes of
// several rows may sum in another order than passes of one row. The difference is rounding, and
// shows where rounding can decide a token: only where two logits are closer than rounding changes
// their difference (top_logits.h).
#pragma once

#include <optional>
#include <span>

#include "knap/knap.h"

#include "tools/check/check.h"
#include "tools/check/peer_check.h"

namespace knap {

class Forward;
class Sequence;

// Largest absolute differences of a logit. 0: every row is bit-identical to a single-row pass.
struct VerificationError {
    double chains = 0;
    double trees = 0;
    double gap_change = 0;  // largest change of the difference of two top logits
    int max_rows = 1;       // rows of the largest verification that was measured
    int n_rows = 0;         // rows compared

    double largest() const;
    void include(const VerificationError& other);
};

// Rows that were not measured may differ by more than the measured ones.
inline constexpr double kUnmeasuredFactor = 2;

// A strategy's text may diverge from plain decoding's where plain decoding's gap, the difference of
// its two best logits, is below this: the largest measured change of a gap times
// kUnmeasuredFactor.
double near_tie_bound(const VerificationError& error);

// Rounding explains changes of gaps of up to this many times the largest one between libllama's
// two implementations of attention, which run none of knap's kernels. The measured ratio was at
// most 1.24 (`knap check --kernels ggml`, -fa on and off; tiny-llama, tiny-qwen3 and tiny-mha in
// F32, F16, BF16, Q8_0 and Q4_0; Intel Xeon, family 6, model 207).
inline constexpr double kRoundingFactor = 4;

// The largest change of a gap that rounding explains on this model and device. A larger one is a
// fault, which must not widen the bound of near ties that it is judged by.
double rounding_limit(const PeerReport& peer);

// Runs `tokens`, at least two, after the committed rows of `cache`: in passes of one row, and in
// verifications of 2 to `max_rows` rows, chains and trees, whose drafts are all accepted. Leaves
// the committed rows unchanged.
VerificationError measure_verifications(Forward& forward,
                                        Sequence& cache,
                                        std::span<const Token> tokens,
                                        int max_rows);

// Measures at the end of every prompt, in verifications of the sizes that the engine's sessions
// allow. Returns nullopt when cancelled.
std::optional<VerificationError> measure_verifications(Engine& engine,
                                                       std::span<const CheckPrompt> prompts,
                                                       const CheckObserver& observer);

}  // namespace knap

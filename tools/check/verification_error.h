// How far the logits of verifications are from those of plain decoding on the same text. Passes of
// several rows may sum in another order than passes of one row. The difference is rounding, and
// shows where rounding can decide a token: the largest logit of a row can change only where the two
// largest are at most twice the difference apart.
#pragma once

#include <optional>
#include <span>

#include "knap/knap.h"

#include "tools/check/check.h"
#include "tools/check/peer_check.h"

namespace knap {

class Forward;
class KvCache;

// Largest absolute differences of a logit. 0: every row is bit-identical to a single-row pass.
struct VerificationError {
    double chains = 0;
    double trees = 0;
    int max_rows = 1;  // rows of the largest verification that was measured
    int n_rows = 0;    // rows compared

    double largest() const;
    void include(const VerificationError& other);
};

// Rows that were not measured may differ by more than the measured ones.
inline constexpr double kUnmeasuredFactor = 2;

// A strategy's text may diverge from plain decoding's where plain decoding's gap, the difference of
// its two best logits, is below this.
double near_tie_bound(const VerificationError& error);

// Rounding explains differences of up to this many times the largest one between libllama's two
// implementations of attention, which run none of knap's kernels. The measured ratio was at most
// 1.3 for tiny models of all shapes and types (`knap check --kernels ggml`, with -fa on and off).
inline constexpr double kRoundingFactor = 4;

// The largest error that rounding explains on this model and device. A larger one is a fault, which
// must not widen the near-tie bound that it is judged by.
double rounding_limit(const PeerReport& peer);

// Runs `tokens`, at least two, after the committed rows of `cache`: in passes of one row, and in
// verifications of 2 to `max_rows` rows, chains and trees, whose drafts are all accepted. Leaves
// the committed rows unchanged.
VerificationError measure_verifications(Forward& forward,
                                        KvCache& cache,
                                        std::span<const Token> tokens,
                                        int max_rows);

// Measures at the end of every prompt, in verifications of the sizes that the engine's sessions
// allow. Returns nullopt when cancelled.
std::optional<VerificationError> measure_verifications(Engine& engine,
                                                       std::span<const CheckPrompt> prompts,
                                                       const CheckObserver& observer);

}  // namespace knap

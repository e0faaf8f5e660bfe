// Compares our logits with libllama's on the same file and tokens. As a yardstick, compares
// libllama's two attention implementations with each other. Sums in a different order round
// differently; with quantised weights, activations are also rounded to 8 bits, which turns tiny
// differences into steps.
#pragma once

#include <optional>
#include <span>

#include "knap/knap.h"

#include "tools/check/check.h"

namespace knap {

struct LogitDistance {
    double max_difference = 0;  // of one logit
    double mean_difference = 0;
    double max_gap_change = 0;  // of two top logits (top_logits.h)
    double equal_choices = 0;   // share of rows with the same argmax
    // The largest gap between the reference's two best logits in rows whose argmax differs.
    double max_gap_of_unequal = 0;
};

struct PeerReport {
    int n_rows = 0;  // rows compared: one per token, for the first 512 tokens of each prompt
    LogitDistance ours;
    LogitDistance flash;  // libllama with flash attention instead
};

// Returns nullopt when cancelled.
std::optional<PeerReport> check_against_libllama(Engine& engine,
                                                 std::span<const CheckPrompt> prompts,
                                                 const CheckObserver& observer);

}  // namespace knap

// How far our logits are from libllama's on the same file and tokens, and, as a yardstick, how far
// libllama's own two ways of computing attention are from each other. Both sums round differently,
// and where weights are quantised, activations are rounded to 8 bits, which makes steps of that.
#pragma once

#include <optional>
#include <span>

#include "knap/knap.h"

#include "tools/check/check.h"

namespace knap {

struct LogitDistance {
    double max_difference = 0;  // of one logit
    double mean_difference = 0;
    double equal_choices = 0;  // share of the rows whose largest logit is the same token's
    // How far the two best logits of the reference are apart where the choices differ, at most.
    double max_gap_of_unequal = 0;
};

struct PeerReport {
    int n_rows = 0;  // compared: one per token, of at most the first 512 of each prompt
    LogitDistance ours;
    LogitDistance flash;  // libllama with flash attention instead
};

// Nullopt: cancelled.
std::optional<PeerReport> check_against_libllama(Engine& engine,
                                                 std::span<const CheckPrompt> prompts,
                                                 const CheckObserver& observer);

}  // namespace knap

// The settings of `asd`.
#pragma once

#include <span>

#include "knap/types.h"

#include "decode/asd/removable_attentions.h"
#include "decode/draft_verify/adaptive_threshold.h"

namespace knap {

struct AsdOptions {
    ThresholdOptions threshold{};
    AttentionRule rule{};
    int n_rows = 64;         // Wc: of the text's end
    int refresh_rounds = 0;  // T: from one choice to the next; 0: one for each request
};

// Throws when an option is not valid. `max_rows`: of a verification, with the pending token.
AsdOptions read_asd_options(const SpeculationOptions& options, int max_rows);

// The keys of --strategy-options.
std::span<const StrategyOptionInfo> asd_option_infos();

}  // namespace knap

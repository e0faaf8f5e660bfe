// The settings of CLaSp (methods 4). Where its paper leaves them open, or says otherwise than the
// comparison in KnapSpec's published code, a setting chooses; the defaults are that code's.
#pragma once

#include <span>

#include "knap/types.h"

namespace knap {

struct ClaspOptions {
    int n_skipped = 0;             // M
    int interval = 64;             // rounds from one search to the next
    int draft_max = 10;            // not stated in the paper
    float exit_confidence = 0.7f;  // a less probable draft is the last; 0: none is
};

// M for a model of so many layers in the published comparison; a quarter of the layers where that
// has none of this size.
int clasp_skipped_layers(int n_layers);

// Throws when an option is not valid for a model of so many layers.
ClaspOptions read_clasp_options(const SpeculationOptions& options, int n_layers);

// The keys of --strategy-options.
std::span<const StrategyOptionInfo> clasp_option_infos();

}  // namespace knap

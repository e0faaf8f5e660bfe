// The settings of CLaSp (docs/methods.md, "CLaSp"). Where the paper gives no value, or another one
// than the comparison in KnapSpec's published code, a setting chooses; the defaults are that
// code's.
#pragma once

#include <span>

#include "knap/types.h"

namespace knap {

struct ClaspOptions {
    int n_skipped = 0;             // M
    int interval = 64;             // rounds between searches
    int draft_max = 10;            // not stated in the paper
    float exit_confidence = 0.7f;  // stop after a token less probable than this; 0: never
};

// M for a model of `n_layers` layers in the published comparison; a quarter of the layers if that
// has no model of this size.
int clasp_skipped_layers(int n_layers);

// Throws when an option is not valid for a model of `n_layers` layers.
ClaspOptions read_clasp_options(const SpeculationOptions& options, int n_layers);

// The keys of --strategy-options.
std::span<const StrategyOptionInfo> clasp_option_infos();

}  // namespace knap

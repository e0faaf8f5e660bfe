// The settings of DEL (methods 6); the defaults are its published code's.
#pragma once

#include <span>

#include "knap/types.h"

namespace knap {

// The longest draft that layers are rated by: a table of 18 columns, from 0.
inline constexpr int kRatedLength = 17;

struct DelOptions {
    int draft_max = 18;
    float decay = 0.95f;   // omega: what a round leaves of the counts before it
    int prompt_rows = 32;  // of the prompt's end, that the counts begin with
    // The variant DELE: drafts are as long as is best for the layer, whatever their confidence.
    bool uses_best_length = false;
};

// Throws when an option is not valid.
DelOptions read_del_options(const SpeculationOptions& options);

// The keys of --strategy-options.
std::span<const StrategyOptionInfo> del_option_infos();

}  // namespace knap

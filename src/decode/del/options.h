// The settings of DEL (docs/methods.md, "DEL"); the defaults are those of its published code.
#pragma once

#include <span>

#include "knap/types.h"

namespace knap {

// The longest draft that layers are rated by. The published table has 18 columns, from 0.
inline constexpr int kRatedLength = 17;

struct DelOptions {
    int draft_max = 18;
    float decay = 0.95f;   // omega: factor on earlier counts per round
    int prompt_rows = 32;  // last rows of the prompt that the counts start with
    // The variant DELE: drafts have the best length for the layer, whatever their confidence.
    bool uses_best_length = false;
};

// Throws when an option is not valid.
DelOptions read_del_options(const SpeculationOptions& options);

// The keys of --strategy-options.
std::span<const StrategyOptionInfo> del_option_infos();

}  // namespace knap

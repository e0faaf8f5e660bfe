// LayerSkip (Elhoushi et al. 2024; methods 9): the first E layers and the head draft d tokens,
// every round the same. That is a static plan with a default exit: what the early layers computed
// is exact, and the verification goes on from it as with any plan that leaves leading layers whole.
#pragma once

#include <memory>
#include <span>

#include "decode/strategy.h"

namespace knap {

// E where nothing is said: about the share of the paper's example, 8 of 32 layers.
int default_exit_layer(int n_layers);

std::unique_ptr<Strategy> build_layerskip(const SpeculationOptions& options,
                                          const StrategyParts& parts);
// The keys of --strategy-options.
std::span<const StrategyOptionInfo> layerskip_option_infos();

}  // namespace knap

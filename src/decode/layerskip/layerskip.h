// LayerSkip (Elhoushi et al. 2024; docs/methods.md, "LayerSkip"): the first E layers and the head
// draft d tokens, the same in every round. This is a static plan with a default exit. The early
// layers compute exact results, and verification resumes from them, as with any plan that keeps
// leading layers whole.
#pragma once

#include <memory>
#include <span>

#include "decode/strategy.h"

namespace knap {

// The default of E: about the share in the paper's example, 8 of 32 layers.
int default_exit_layer(int n_layers);

std::unique_ptr<Strategy> build_layerskip(const SpeculationOptions& options,
                                          const StrategyParts& parts);
// The keys of --strategy-options.
std::span<const StrategyOptionInfo> layerskip_option_infos();

}  // namespace knap

// Plain decoding: nothing is drafted. What every other strategy is measured against (methods 2).
#pragma once

#include <memory>

#include "decode/strategy.h"

namespace knap {

std::unique_ptr<Strategy> build_autoregressive(const SpeculationOptions& options,
                                               const StrategyParts& parts);

}  // namespace knap

// Plain decoding: drafts nothing. It is the baseline of every comparison (docs/methods.md, "Plain
// decoding").
#pragma once

#include <memory>

#include "decode/strategy.h"

namespace knap {

std::unique_ptr<Strategy> build_autoregressive(const SpeculationOptions& options,
                                               const StrategyParts& parts);

}  // namespace knap

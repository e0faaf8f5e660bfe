// A saved profile that makes the strategy `knapspec` draft whenever it can, and from the same
// sources in every run, however fast the machine is.
//
// It claims that a step takes minutes, almost all of them for reading the cache, and that the
// further rows of a verification are almost free. So windows are cheap drafts, and copies and
// cascades pay off. Measured times are so much shorter that the cost tracker discards them
// (search/cost/cost_tracker.h): they correct nothing, and no source ever seems to lose time and is
// suspended.
#pragma once

#include <filesystem>

#include "knap/knap.h"

namespace knap {

// What makes a step slow.
enum class Slow { cache, weights };

// Returns `config` with such a profile for its model, devices and cache, in a file of `folder`,
// which must exist. Loads the model to ask for its shape. If the weights are what is slow, plans
// without modules, or with fewer experts, are cheap drafts instead of windows.
RuntimeConfig with_eager_profile(RuntimeConfig config,
                                 Slow slow,
                                 const std::filesystem::path& folder);

// Drafts with a plan at any predicted gain, with small windows, and always searches by knapsack.
// Windows read whole blocks of the cache, so they save something from about 200 tokens on.
SpeculationOptions eager_knapspec();

}  // namespace knap

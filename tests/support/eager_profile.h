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

namespace knap::test {

// What makes a step slow.
enum class Slow { cache, weights };

// Writes such a profile for the model, devices and cache of `config` into `folder` and returns its
// path, for programs that take it as `--profile`.
std::filesystem::path write_eager_profile(RuntimeConfig config,
                                          const std::filesystem::path& folder,
                                          Slow slow);

// Returns `config` with such a profile for its model, devices and cache. If the weights are what is
// slow, plans without modules, or with fewer experts, are cheap drafts instead of windows.
RuntimeConfig with_eager_profile(RuntimeConfig config, Slow slow = Slow::cache);

// Drafts with a plan at any predicted gain, with small windows, and always searches by knapsack.
// Windows read whole blocks of the cache, so they save something from about 200 tokens on.
SpeculationOptions eager_knapspec();

// What drafts from each source achieved over several requests.
class SourceCounts {
  public:
    void add(const SpeculationStatistics& statistics);
    // Fails the test unless every source had accepted and rejected tokens. An exactness test proves
    // nothing about a source that never drafted.
    void expect_both_outcomes_of_each() const;

  private:
    SourceStatistics copies_;
    SourceStatistics plans_;
    SourceStatistics cascades_;
};

}  // namespace knap::test

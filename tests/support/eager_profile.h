// Tests with a profile that makes the strategy `knapspec` draft whenever it can
// (tools/check/eager_profile.h), and what each source of drafts achieved.
#pragma once

#include "knap/knap.h"

#include "tools/check/eager_profile.h"

namespace knap::test {

using knap::eager_knapspec;
using knap::Slow;

// The profile's file is in the temporary folder.
RuntimeConfig with_eager_profile(RuntimeConfig config, Slow slow = Slow::cache);

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

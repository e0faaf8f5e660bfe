// The strategies of a session, one for each set of options: what a strategy has learned lasts from
// request to request, also where requests with other options come between. Only the few that were
// used last are kept.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "knap/types.h"

#include "decode/strategy.h"

namespace knap {

class KeptStrategies {
  public:
    static constexpr std::size_t kMost = 4;

    using Make = std::function<std::unique_ptr<Strategy>(const SpeculationOptions& options)>;
    // The strategy for `options`; `make` makes it unless it is kept. The one that was not used for
    // longest goes where there would be more than kMost. What `make` throws changes nothing. Valid
    // until the next call.
    Strategy& get(const SpeculationOptions& options, const Make& make);
    void clear() { kept_.clear(); }

  private:
    struct Kept {
        SpeculationOptions options;
        std::unique_ptr<Strategy> strategy;
    };
    std::vector<Kept> kept_;  // the latest used is the last
};

}  // namespace knap

// The strategies of a session, one for each set of options. What a strategy has learned lasts from
// request to request, even if requests with other options come in between. Only the few most
// recently used strategies are kept.
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
    // Returns the strategy for `options`; calls `make` if it is not kept. Drops the least recently
    // used one if there would be more than kMost. If `make` throws, nothing changes. Valid until
    // the next call.
    Strategy& get(const SpeculationOptions& options, const Make& make);
    // The most recently used one; null: none is kept.
    Strategy* latest() { return kept_.empty() ? nullptr : kept_.back().strategy.get(); }
    void clear() { kept_.clear(); }

  private:
    struct Kept {
        SpeculationOptions options;
        std::unique_ptr<Strategy> strategy;
    };
    std::vector<Kept> kept_;  // the most recently used is last
};

}  // namespace knap

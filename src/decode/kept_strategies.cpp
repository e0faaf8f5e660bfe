#include "decode/kept_strategies.h"

#include <algorithm>
#include <utility>

namespace knap {

Strategy& KeptStrategies::get(const SpeculationOptions& options, const Make& make) {
    const auto found = std::ranges::find(kept_, options, &Kept::options);
    if (found != kept_.end()) {
        std::rotate(found, found + 1, kept_.end());
        return *kept_.back().strategy;
    }
    std::unique_ptr<Strategy> made = make(options);
    if (kept_.size() == kMost) {
        kept_.erase(kept_.begin());
    }
    kept_.push_back({.options = options, .strategy = std::move(made)});
    return *kept_.back().strategy;
}

}  // namespace knap

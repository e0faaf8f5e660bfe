#include "serve/engine/histogram.h"

#include <algorithm>
#include <utility>

namespace knap {

Histogram::Histogram(std::vector<double> upper_bounds)
    : bounds_(std::move(upper_bounds)),
      counts_(std::make_unique<std::atomic<std::int64_t>[]>(bounds_.size() + 1)) {}

void Histogram::add(double value) {
    const auto bucket = std::ranges::lower_bound(bounds_, value) - bounds_.begin();
    ++counts_[static_cast<std::size_t>(bucket)];
    sum_.fetch_add(value);
}

std::int64_t Histogram::cumulative(std::size_t bucket) const {
    std::int64_t total = 0;
    for (std::size_t i = 0; i <= bucket; ++i) {
        total += counts_[i].load();
    }
    return total;
}

}  // namespace knap

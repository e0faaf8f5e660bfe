#include "serve/periodic_calls.h"

#include <utility>

namespace knap {

void PeriodicCalls::add(Call call) {
    const std::lock_guard lock(mutex_);
    calls_.push_back(std::move(call));
}

void PeriodicCalls::run() {
    const std::lock_guard lock(mutex_);
    std::erase_if(calls_, [](const Call& call) { return !call(); });
}

}  // namespace knap

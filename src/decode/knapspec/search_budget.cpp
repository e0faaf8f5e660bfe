#include "decode/knapspec/search_budget.h"

#include <algorithm>
#include <cmath>

namespace knap {

void SearchBudget::begin() {
    last_reading_ms_ = 0;
    time_ms_ = 0;
    spent_ms_ = 0;
}

void SearchBudget::advance(double elapsed_ms, double plausible_ms) {
    if (!std::isfinite(elapsed_ms)) {
        return;
    }
    const double passed = std::max(0.0, elapsed_ms - last_reading_ms_);
    time_ms_ += plausible_ms > 0 ? std::min(passed, plausible_ms) : passed;
    last_reading_ms_ = elapsed_ms;
}

void SearchBudget::spend(double ms) {
    if (std::isfinite(ms)) {
        spent_ms_ += std::max(0.0, ms);
    }
}

}  // namespace knap

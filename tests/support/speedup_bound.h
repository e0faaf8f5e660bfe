// The highest speed-up over plain decoding that any draft length allows.
#pragma once

#include <utility>
#include <vector>

#include "search/throughput.h"

namespace knap::test {

// The maximum over g of E(alpha, g) / (g * rho + v(g + 1)), with the cost of a draft
// (`draft_ratio`, rho) and of a verification ([g], v; at least one) in steps of plain decoding.
// With v = 1 it is above 1 if and only if alpha is above rho.
inline double speedup_bound(const AcceptanceByDepth& acceptance,
                            double draft_ratio,
                            std::vector<double> verify_ratio) {
    const RoundCost cost = {.draft_step_ms = draft_ratio, .verify_ms = std::move(verify_ratio)};
    return best_length(acceptance, cost, {.first = 0, .last = cost.max_length()})->tokens_per_ms;
}

}  // namespace knap::test

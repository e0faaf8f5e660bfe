// A machine on which every pass takes a known time: for profiles that are made up, and for tests of
// cost models.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "search/cost/cost_profile.h"
#include "search/cost/probes.h"

namespace knap {

struct FakeMachine {
    std::vector<int> layer_classes;
    double fixed_ms = 0.1;
    double head_ms = 2.0;
    double cache_row_ms = 1e-4;
    std::vector<double> attention_ms{0.2};  // [class]
    std::vector<double> mlp_ms{0.3};        // [class]
    // How much more a pass of n_rows rows costs than one of one row.
    std::function<double(int n_rows)> weights_factor = [](int n) { return 0.6 + 0.4 * n; };
    std::function<double(int n_rows)> cache_factor = [](int n) { return 0.9 + 0.1 * n; };

    int n_layers() const { return static_cast<int>(layer_classes.size()); }
    double ms(const Probe& probe) const;
    CostSample sample(const Probe& probe, double error = 0) const;
    // A profile of all probes, with random relative errors of up to `noise`.
    CostProfile profile(std::span<const Probe> probes, double noise = 0) const;
};

}  // namespace knap

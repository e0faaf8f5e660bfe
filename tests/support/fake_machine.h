// A machine on which every pass takes a known time, for tests of cost models.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "search/cost/cost_profile.h"
#include "search/cost/probes.h"

namespace knap::test {

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

// A machine of `n_layers` layers of one class.
FakeMachine plain_machine(int n_layers);
// At a long context attention dominates a step, and each further row of a pass costs `row_price`
// times a one-row pass.
FakeMachine long_context_machine(int n_layers, double row_price);
// Alternates between two classes with different times.
FakeMachine mixed_machine(int n_layers);

// Steps with skipped modules and windowed attentions, at contexts of up to 8192 tokens.
std::vector<Probe> random_steps(int n_layers, int n);

}  // namespace knap::test

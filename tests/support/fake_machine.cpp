#include "support/fake_machine.h"

#include <random>

#include "search/cost/pass_work.h"

namespace knap::test {

double FakeMachine::ms(const Probe& probe) const {
    double weights_ms = probe.has_head ? head_ms : 0;
    double n_cache_rows = 0;
    for (int layer = 0; layer < n_layers(); ++layer) {
        const auto c = static_cast<std::size_t>(layer_classes[static_cast<std::size_t>(layer)]);
        if (probe.plan.runs(layer, Module::attention)) {
            weights_ms += attention_ms[c];
            n_cache_rows += cache_rows_read(probe.plan.level(layer, Module::attention), 0,
                                            probe.n_context, probe.n_rows);
        }
        weights_ms += probe.plan.runs(layer, Module::mlp) ? mlp_ms[c] : 0;
    }
    const bool is_one = probe.n_rows == 1;
    return fixed_ms + weights_ms * (is_one ? 1 : weights_factor(probe.n_rows)) +
           n_cache_rows * cache_row_ms * (is_one ? 1 : cache_factor(probe.n_rows));
}

CostSample FakeMachine::sample(const Probe& probe, double error) const {
    return {.plan = probe.plan,
            .n_context = probe.n_context,
            .n_rows = probe.n_rows,
            .has_head = probe.has_head,
            .ms = ms(probe) * (1 + error)};
}

CostProfile FakeMachine::profile(std::span<const Probe> probes, double noise) const {
    std::mt19937 engine(3);
    std::uniform_real_distribution<double> error(-noise, noise);
    CostProfile profile{.layer_classes = layer_classes};
    for (const Probe& probe : probes) {
        profile.samples.push_back(sample(probe, error(engine)));
    }
    return profile;
}

FakeMachine plain_machine(int n_layers) {
    return {.layer_classes = std::vector<int>(static_cast<std::size_t>(n_layers), 0)};
}

FakeMachine long_context_machine(int n_layers, double row_price) {
    FakeMachine machine = plain_machine(n_layers);
    machine.head_ms = 0.1;
    machine.cache_row_ms = 1e-3;
    machine.weights_factor = [=](int n) { return 1 + row_price * (n - 1); };
    machine.cache_factor = machine.weights_factor;
    return machine;
}

FakeMachine mixed_machine(int n_layers) {
    FakeMachine machine{.attention_ms = {0.2, 0.5}, .mlp_ms = {0.3, 0.15}};
    for (int layer = 0; layer < n_layers; ++layer) {
        machine.layer_classes.push_back(layer % 2);
    }
    return machine;
}

std::vector<Probe> random_steps(int n_layers, int n) {
    std::mt19937 engine(5);
    const auto below = [&](int end) { return static_cast<int>(engine() % unsigned(end)); };
    std::vector<Probe> probes;
    for (int i = 0; i < n; ++i) {
        Probe probe{.plan = ModulePlan(n_layers), .n_context = below(8192)};
        const int recent = 32 + below(1024);
        for (int layer = 0; layer < n_layers; ++layer) {
            const int choice = below(3);
            if (choice > 0) {
                probe.plan.set(layer, Module::attention,
                               choice == 1 ? Level::skip : Level::windowed(16, recent));
            }
            if (below(3) == 0) {
                probe.plan.set(layer, Module::mlp, Level::skip);
            }
        }
        probes.push_back(probe);
    }
    return probes;
}

}  // namespace knap::test

#include "support/fake_machine.h"

#include <random>

namespace knap::test {

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

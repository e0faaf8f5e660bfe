#include "tools/check/fake_machine.h"

#include <random>

#include "search/cost/pass_work.h"

namespace knap {

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

}  // namespace knap

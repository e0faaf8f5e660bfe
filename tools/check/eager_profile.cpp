#include "tools/check/eager_profile.h"

#include <utility>

#include "base/text.h"
#include "runtime/engine_impl.h"
#include "runtime/files/known_costs.h"
#include "runtime/files/machine_fingerprint.h"
#include "runtime/files/profile_file.h"
#include "tools/check/fake_machine.h"

namespace knap {
namespace {

constexpr int kProfiledRows = 16;
// Times are proportional to bytes, as in the prior of the fit, so that the fit recovers them. One
// rate for all bytes would take an hour for the weights. What is slow takes kSlow times that rate,
// and the rest kFast of it.
constexpr double kHour = 3.6e6;  // in ms
constexpr double kSlow = 20;
constexpr double kFast = 0.05;

FakeMachine slow_machine(const CostProfile& blank, Slow slow) {
    const double weights = slow == Slow::weights ? kSlow : kFast;
    const double cache = slow == Slow::cache ? kSlow : kFast;
    const PartBytes& bytes = blank.bytes;
    double n_bytes = bytes.head;
    for (const int c : blank.layer_classes) {
        n_bytes += bytes.attention[static_cast<std::size_t>(c)];
        n_bytes += bytes.mlp[static_cast<std::size_t>(c)];
    }
    const double ms_per_byte = kHour / n_bytes;
    const auto scaled = [&](std::vector<double> parts) {
        for (double& part : parts) {
            part *= weights * ms_per_byte;
        }
        return parts;
    };
    FakeMachine machine{.layer_classes = blank.layer_classes,
                        .fixed_ms = kHour / 1000,
                        .head_ms = weights * ms_per_byte * bytes.head,
                        .cache_row_ms = cache * ms_per_byte * bytes.cache_row,
                        .attention_ms = scaled(bytes.attention),
                        .mlp_ms = scaled(bytes.mlp)};
    machine.weights_factor = [](int n_rows) { return 1 + 1e-3 * (n_rows - 1); };
    machine.cache_factor = machine.weights_factor;
    return machine;
}

}  // namespace

RuntimeConfig with_eager_profile(RuntimeConfig config,
                                 Slow slow,
                                 const std::filesystem::path& folder) {
    config.profile = "none";
    const Engine engine(config);
    const Engine::Impl& parts = impl_of(engine);
    CostProfile profile = blank_profile(parts);
    const FakeMachine machine = slow_machine(profile, slow);
    profile.samples =
        machine.profile(profile_probes(profile.layer_classes, parts.config.n_ctx, kProfiledRows))
            .samples;
    const MachineFingerprint fingerprint = machine_fingerprint(parts);
    const auto path = folder / concat("eager-", slow == Slow::cache ? "cache-" : "weights-",
                                      fingerprint.hash(), ".json");
    save_profile(path, profile, fingerprint);
    config.profile = path.string();
    return config;
}

SpeculationOptions eager_knapspec() {
    return {.strategy = "knapspec",
            .settings = {{"margin", "0"}, {"windows", "8/48"}, {"knapsack", "always"}}};
}

}  // namespace knap

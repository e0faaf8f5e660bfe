#include "tools/measure/bench_context.h"

#include <sys/utsname.h>
#include <unistd.h>

#include "base/text.h"
#include "device/cpu_topology.h"
#include "device/device_identity.h"
#include "device/device_list.h"
#include "forward/plan_text.h"
#include "kernels/matmul/matmul.h"
#include "runtime/engine_impl.h"
#include "runtime/files/known_costs.h"
#include "runtime/files/machine_fingerprint.h"

namespace knap {
namespace {

std::string system_name() {
    utsname names{};
    uname(&names);
    return concat(names.sysname, " ", names.release);
}

BenchModel describe_model(const Engine& engine) {
    const ModelInfo info = engine.info();
    return {.file = engine.config().model_path.filename().string(),
            .name = info.name,
            .architecture = info.architecture,
            .n_layers = info.n_layers,
            .n_embd = info.n_embd,
            .n_parameters = info.n_parameters,
            .types = join(info.types, ",", [](const auto& type) { return type.first; }),
            .file_bytes = info.file_bytes,
            .fingerprint = model_fingerprint(impl_of(engine))};
}

std::string field_of(const MachineFingerprint& fingerprint, const std::string& name) {
    for (const auto& [field, value] : fingerprint.fields) {
        if (field == name) {
            return value;
        }
    }
    return {};
}

BenchSettings known_settings(const Engine& engine) {
    const RuntimeConfig& config = engine.config();
    const MachineFingerprint fingerprint = machine_fingerprint(impl_of(engine));
    BenchSettings settings{.threads = config.n_threads,
                           .n_ctx = config.n_ctx,
                           .cache_type_k = field_of(fingerprint, "cache_type_k"),
                           .cache_type_v = field_of(fingerprint, "cache_type_v"),
                           .kernels = field_of(fingerprint, "kernels"),
                           .exact = config.exact,
                           .memory = impl_of(engine).learned != nullptr};
    if (!config.adapter_path.empty()) {
        settings.adapter = config.adapter_path.filename().string();
    }
    return settings;
}

std::vector<BenchCost> known_costs(const Engine::Impl& engine) {
    std::vector<BenchCost> costs;
    for (const CostSample& sample : known_profile(engine).samples) {
        costs.push_back({.plan = to_string(sample.plan),
                         .n_context = sample.n_context,
                         .n_rows = sample.n_rows,
                         .has_head = sample.has_head,
                         .ms = sample.ms});
    }
    return costs;
}

}  // namespace

BenchHost describe_host() {
    return {.cpu = describe(cpu_device()).description,
            .n_cores = default_thread_count(),
            .isa = std::string(to_string(matmul_kernels().front().isa)),
            .memory_bytes = std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE),
            .system = system_name()};
}

BenchReport describe_bench(const Engine& engine) {
    BenchReport report{.version = std::string(version()),
                       .host = describe_host(),
                       .device = identify(impl_of(engine).layers()).name,
                       .model = describe_model(engine),
                       .settings = known_settings(engine),
                       .costs = known_costs(impl_of(engine))};
    report.settings.profile = !report.costs.empty() || !known_plans(impl_of(engine)).empty();
    return report;
}

}  // namespace knap

#include "runtime/files/machine_fingerprint.h"

#include <iomanip>
#include <sstream>

#include "base/hash.h"
#include "base/text.h"
#include "device/device_identity.h"
#include "graph/attention/attention_policy.h"
#include "kernels/attention/attention.h"
#include "kernels/matmul/matmul.h"
#include "runtime/engine_impl.h"

namespace knap {
namespace {

std::string hexadecimal(std::uint64_t value) {
    std::ostringstream out;
    out << std::hex << std::setw(16) << std::setfill('0') << value;
    return out.str();
}

std::string name_of(CacheType type) {
    switch (type) {
        case CacheType::f32:
            return "f32";
        case CacheType::f16:
            return "f16";
        case CacheType::q8_0:
            return "q8_0";
    }
    return {};
}

// The path of attention on each device, and which of our kernels takes it: "kernel avx512",
// "folded", "flash".
std::string describe_attention(const Engine::Impl& engine) {
    const std::string text = join(engine.layers().shares(), ", ", [&](const LayerShare& share) {
        const AttentionPath path =
            choose_attention(engine.model, engine.config, *share.backend).path;
        const bool is_ours = path == AttentionPath::kernel;
        return concat(to_string(path), is_ours ? " " : "",
                      is_ours ? to_string(attention_kernels().front().isa) : "");
    });
    return engine.pads_to_be_invariant() ? concat(text, ", exact") : text;
}

}  // namespace

std::string describe_products(const Engine::Impl& engine) {
    const WeightStatistics& weights = engine.weights->statistics();
    return weights.packed_types == "off"
               ? "ggml"
               : concat(to_string(matmul_kernels().front().isa), " ", weights.packed_types);
}

std::string MachineFingerprint::hash() const {
    Fnv1a hash;
    for (const auto& [name, value] : fields) {
        // The lengths keep ("ab", "c") apart from ("a", "bc").
        hash.add(std::uint64_t{name.size()});
        hash.add(name);
        hash.add(std::uint64_t{value.size()});
        hash.add(value);
    }
    return hexadecimal(hash.value());
}

std::string model_fingerprint(const Engine::Impl& engine) {
    return hexadecimal(engine.fingerprint);
}

MachineFingerprint machine_fingerprint(const Engine::Impl& engine) {
    const RuntimeConfig& config = engine.config;
    const DeviceIdentity device = identify(engine.layers());
    return {{
        {"model", model_fingerprint(engine)},
        {"device", device.name},
        {"instructions", device.features},
        {"threads", std::to_string(config.n_threads)},
        {"cache_type_k", name_of(config.cache_type_k)},
        {"cache_type_v", name_of(config.cache_type_v)},
        {"attention", describe_attention(engine)},
        {"kernels", config.kernels == Kernels::ggml ? "ggml" : "auto"},
        {"repack", engine.weights->statistics().repacked_types},
        {"products", describe_products(engine)},
        {"ggml", device.ggml},
        {"knap", std::string(version())},
    }};
}

}  // namespace knap

#include "runtime/files/machine_fingerprint.h"

#include <iomanip>
#include <sstream>

#include "base/error.h"
#include "base/hash.h"
#include "base/quoted.h"
#include "base/text.h"
#include "device/device_identity.h"
#include "graph/attention/attention_policy.h"
#include "kernels/attention/attention.h"
#include "kernels/matmul/matmul.h"
#include "model/cache_type.h"
#include "runtime/engine_impl.h"
#include "runtime/files/json_file.h"

namespace knap {
namespace {

std::string hexadecimal(std::uint64_t value) {
    std::ostringstream out;
    out << std::hex << std::setw(16) << std::setfill('0') << value;
    return out.str();
}

// The path of attention on each device, and which of our kernels takes it: "kernel avx512", "kernel
// cuda", "folded", "flash".
std::string describe_attention(const Engine::Impl& engine) {
    if (engine.weights->tensors().has_strips) {
        return "kernel cuda";
    }
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
    const std::string& types = engine.weights->statistics().packed_types;
    if (types == "off") {
        return "ggml";
    }
    const bool is_cuda = engine.weights->tensors().has_strips;
    return concat(is_cuda ? "cuda" : to_string(matmul_kernels().front().isa), " ", types);
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

void add_fields(nlohmann::ordered_json& file, const MachineFingerprint& fingerprint) {
    for (const auto& [name, value] : fingerprint.fields) {
        file["fields"][name] = value;
    }
}

void check_fields(const nlohmann::json& file, const MachineFingerprint& expected) {
    const auto fields = file.find("fields");
    if (fields == file.end() || !fields->is_object()) {
        fail("expected an object `fields`, found none");
    }
    for (const auto& [name, value] : expected.fields) {
        const std::string found = text_in(*fields, name.c_str());
        if (found != value) {
            fail("its ", name, " differs: expected ", in_quotes(value), ", found ",
                 in_quotes(found));
        }
    }
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
        {"cache_type_k", std::string(to_string(config.cache_type_k))},
        {"cache_type_v", std::string(to_string(config.cache_type_v))},
        {"attention", describe_attention(engine)},
        {"kernels", config.kernels == Kernels::ggml  ? "ggml"
                    : config.kernels == Kernels::own ? "own"
                                                     : "auto"},
        {"repack", engine.weights->statistics().repacked_types},
        {"products", describe_products(engine)},
        {"ggml", device.ggml},
        {"knap", std::string(version())},
    }};
}

}  // namespace knap

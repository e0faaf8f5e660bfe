// Granite 3.x and 4.x: a llama with four scalars, of which files must have the last. With experts:
// granitemoe.
#include <optional>

#include "model/architectures/architecture.h"
#include "model/config_reader.h"

namespace knap {
namespace {

constexpr char kLogits[] = "logit_scale";
constexpr char kRotates[] = "rope.scaling.finetuned";

// 0 in a file means none.
float scale_or(const ConfigReader& reader, std::string_view field, float fallback) {
    const float scale = reader.number(field).value_or(0.0f);
    return scale == 0.0f ? fallback : scale;
}

void describe_scales(const ConfigReader& reader, ModelConfig& config) {
    config.embedding_scale = scale_or(reader, "embedding_scale", 1.0f);
    config.residual_scale = scale_or(reader, "residual_scale", 1.0f);
    config.attention_scale = scale_or(reader, "attention.scale", config.attention_scale);
    const std::optional<float> divisor = reader.number(kLogits);
    if (divisor.value_or(0.0f) == 0.0f) {
        reader.fail_field(kLogits, "a number other than 0", divisor ? "0" : "no such key");
    }
    config.logit_scale = 1.0f / *divisor;
}

void describe_granite(const ConfigReader& reader, ModelConfig& config) {
    describe_scales(reader, config);
    if (!reader.file().boolean(reader.key(kRotates)).value_or(true)) {
        for (LayerSpec& layer : config.layers) {
            layer.rotation = Rotation::none;
        }
    }
}

}  // namespace

Architecture arch_granite() {
    return {.name = "granite",
            .rope_pairing = RopePairing::neighbours,
            .tensors = llama_tensors(),
            .fields = {"embedding_scale", "residual_scale", "attention.scale", kLogits},
            .describe = describe_granite};
}

// As in libllama, its layers always rotate.
Architecture arch_granitemoe() {
    Architecture architecture =
        with_experts(arch_granite(), "granitemoe", {.may_have_shared = true});
    add_shared_expert(architecture.tensors);
    architecture.describe = describe_scales;
    return architecture;
}

}  // namespace knap

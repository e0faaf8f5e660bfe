// Ministral 3, and newer conversions of Mistral Small 3.x: a llama whose attention may sharpen with
// the position, and that sets all of YaRN's parameters.
#include <utility>

#include "model/architectures/architecture.h"
#include "model/config_reader.h"

namespace knap {
namespace {

constexpr char kTemperature[] = "attention.temperature_scale";

void describe_mistral3(const ConfigReader& reader, ModelConfig& config) {
    config.temperature = {.scale = reader.number(kTemperature).value_or(0.0f),
                          .length = config.rope.n_ctx_orig};
}

}  // namespace

Architecture arch_mistral3() {
    TensorTable tensors = llama_tensors();
    add_experts(tensors);
    return {.name = "mistral3",
            .rope_pairing = RopePairing::neighbours,
            .tensors = std::move(tensors),
            .fields = {kTemperature, kYarnFields},
            .describe = describe_mistral3,
            .experts = ExpertRules{.may_be_dense = true}};
}

}  // namespace knap

// What distinguishes the supported architectures. Each has a file <name>.cpp here and an entry in
// the list of all.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "model/architectures/experts.h"
#include "model/config.h"
#include "model/tensor_table.h"

namespace knap {

class ConfigReader;

// Groups of rotation fields that only some architectures read.
constexpr std::string_view kPartialRotation = "rope.dimension_count";  // less than a whole head
constexpr std::string_view kLongRope = "rope.scaling.longrope";        // as a type of scaling
constexpr std::string_view kYarnFields = "rope.scaling.yarn";          // betas, log multiplier
constexpr std::string_view kSections = "rope.dimension_sections";
// How many of the last layers predict further tokens. Architectures that read it ignore them.
constexpr std::string_view kPredictLayers = "nextn_predict_layers";

struct Architecture {
    std::string_view name;  // general.architecture
    RopePairing rope_pairing;
    TensorTable tensors;
    // Fields that `describe` reads; elsewhere a value that changes the model is refused.
    std::vector<std::string_view> fields{};
    // Fills in what the architecture adds to a dense decoder. May be null.
    void (*describe)(const ConfigReader& reader, ModelConfig& config) = nullptr;
    std::optional<ExpertRules> experts{};  // none: layers have one MLP

    bool reads(std::string_view field) const;
};

Architecture arch_ernie4_5();
Architecture arch_exaone4();
Architecture arch_gemma2();
Architecture arch_gemma3();
Architecture arch_glm4();
Architecture arch_gpt_oss();
Architecture arch_granite();
Architecture arch_granitemoe();
Architecture arch_hunyuan_dense();
Architecture arch_llama();
Architecture arch_mistral3();
Architecture arch_olmo2();
Architecture arch_phi3();
Architecture arch_qwen2();
Architecture arch_qwen3();
Architecture arch_qwen3moe();
Architecture arch_qwen3vl();
Architecture arch_qwen3vlmoe();
Architecture arch_seed_oss();
Architecture arch_smollm3();
Architecture arch_kangaroo();  // for adapters (adapter.h)

// The same with experts in every layer, and another name.
Architecture with_experts(Architecture dense, std::string_view name, const ExpertRules& rules);

// The architectures of models, without that of adapters.
const std::vector<Architecture>& architectures();

// Returns null when no model architecture has that name.
const Architecture* find_architecture(std::string_view name);

}  // namespace knap

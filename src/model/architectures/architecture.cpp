#include "model/architectures/architecture.h"

#include <algorithm>

namespace knap {

bool Architecture::reads(std::string_view field) const {
    return std::ranges::find(fields, field) != fields.end() || (experts && field == kExpertCount);
}

Architecture with_experts(Architecture dense, std::string_view name, const ExpertRules& rules) {
    dense.name = name;
    dense.experts = rules;
    add_experts(dense.tensors);
    return dense;
}

const std::vector<Architecture>& architectures() {
    static const std::vector<Architecture> list = {
        arch_llama(),    arch_qwen2(),      arch_qwen3(),      arch_ernie4_5(),
        arch_exaone4(),  arch_gemma2(),     arch_gemma3(),     arch_glm4(),
        arch_gpt_oss(),  arch_granite(),    arch_granitemoe(), arch_hunyuan_dense(),
        arch_mistral3(), arch_olmo2(),      arch_phi3(),       arch_qwen3moe(),
        arch_qwen3vl(),  arch_qwen3vlmoe(), arch_seed_oss(),   arch_smollm3()};
    return list;
}

const Architecture* find_architecture(std::string_view name) {
    const auto& list = architectures();
    const auto found = std::find_if(list.begin(), list.end(),
                                    [&](const Architecture& entry) { return entry.name == name; });
    return found == list.end() ? nullptr : &*found;
}

}  // namespace knap

#include "model/architectures/architecture.h"

#include <algorithm>

namespace knap {

bool Architecture::reads(std::string_view field) const {
    return std::ranges::find(fields, field) != fields.end();
}

const std::vector<Architecture>& architectures() {
    static const std::vector<Architecture> list = {arch_llama(), arch_qwen2(), arch_qwen3()};
    return list;
}

const Architecture* find_architecture(std::string_view name) {
    const auto& list = architectures();
    const auto found = std::find_if(list.begin(), list.end(),
                                    [&](const Architecture& entry) { return entry.name == name; });
    return found == list.end() ? nullptr : &*found;
}

}  // namespace knap

// What distinguishes the supported architectures. Each has a file <name>.cpp here and an entry in
// the list of all.
#pragma once

#include <string_view>
#include <vector>

#include "model/config.h"
#include "model/tensor_table.h"

namespace knap {

struct Architecture {
    std::string_view name;  // general.architecture
    RopePairing rope_pairing;
    TensorTable tensors;
};

Architecture arch_llama();
Architecture arch_qwen2();
Architecture arch_qwen3();
Architecture arch_kangaroo();  // for adapters (adapter.h)

// The architectures of models, without that of adapters.
const std::vector<Architecture>& architectures();

// Returns null when no model architecture has that name.
const Architecture* find_architecture(std::string_view name);

}  // namespace knap

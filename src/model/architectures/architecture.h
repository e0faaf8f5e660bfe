// What sets one architecture apart from another: a file arch_<name>.cpp each, and one list of them
// all.
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
Architecture arch_kangaroo();  // of adapters (adapter.h)

// Those of models.
const std::vector<Architecture>& architectures();

// Null when there is none of that name.
const Architecture* find_architecture(std::string_view name);

}  // namespace knap

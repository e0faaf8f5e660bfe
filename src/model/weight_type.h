// The tensor types that weights may have.
#pragma once

#include <string>

#include "ggml.h"

namespace knap {

// True when ggml can multiply by a matrix of this type and look up rows in it. ggml has other types
// for activations and indices, and aborts when a weight has one of them.
bool is_weight_type(ggml_type type);

// The usual spelling: "Q4_0", "Q4_K", "BF16".
std::string type_label(ggml_type type);

}  // namespace knap

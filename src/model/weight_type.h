// The tensor types that serve as weights.
#pragma once

#include <string>

#include "ggml.h"

namespace knap {

// Whether ggml multiplies by a matrix of this type and looks rows up in it. It has other types too,
// for activations and indices, and aborts when a weight has one of those.
bool is_weight_type(ggml_type type);

// As people write it: "Q4_0", "Q4_K", "BF16".
std::string type_label(ggml_type type);

}  // namespace knap

// What Gemma 2 and Gemma 3 share.
#pragma once

#include "model/architectures/architecture.h"

namespace knap {

// Norms before and after modules.
TensorTable gemma_tensors();

// Sets what both compute alike. The largest model, of `n_layers_of_largest` layers, scales
// attention by the width of its stream instead of that of its heads.
void describe_gemma(int n_layers_of_largest, ModelConfig& config);

}  // namespace knap

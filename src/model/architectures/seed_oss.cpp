// Seed-OSS: the norm before the MLP has another name.
#include <algorithm>
#include <utility>

#include "model/architectures/architecture.h"

namespace knap {

Architecture arch_seed_oss() {
    TensorTable tensors = dense_decoder_tensors();
    std::ranges::find(tensors.of_layer, "ffn_norm.weight", &TensorSpec<LayerWeights>::name)->name =
        "post_attention_norm.weight";
    return {"seed_oss", RopePairing::halves, std::move(tensors)};
}

}  // namespace knap

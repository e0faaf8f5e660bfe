// Qwen2 and Qwen2.5, dense: the attention projections have biases.
#include <utility>

#include "model/architectures/architecture.h"

namespace knap {

Architecture arch_qwen2() {
    TensorTable tensors = dense_decoder_tensors();
    tensors.of_model.push_back(
        {"output.bias", &ModelTensors::output_b, {Size::n_vocab}, Presence::optional});
    return {"qwen2", RopePairing::halves, std::move(tensors)};
}

}  // namespace knap

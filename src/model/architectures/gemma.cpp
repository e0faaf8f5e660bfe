#include "model/architectures/gemma.h"

#include <cmath>

namespace knap {

TensorTable gemma_tensors() {
    TensorTable tensors = dense_decoder_tensors();
    add_post_norms(tensors);
    return tensors;
}

void describe_gemma(int n_layers_of_largest, ModelConfig& config) {
    config.embedding_scale = std::sqrt(static_cast<float>(config.n_embd));
    config.activation = Activation::gelu;
    if (config.n_layers == n_layers_of_largest) {
        config.attention_scale = usual_attention_scale(config.n_embd / config.n_heads);
    }
}

}  // namespace knap

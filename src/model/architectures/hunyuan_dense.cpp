// Hunyuan, dense: queries and keys are normalised per head after rotation.
#include <cmath>
#include <utility>

#include "model/architectures/architecture.h"
#include "model/config_reader.h"

namespace knap {
namespace {

void describe_hunyuan(const ConfigReader& reader, ModelConfig& config) {
    config.head_norm = HeadNorm::after_rotation;
    // Stretches the context by a higher base ("NTK-aware").
    const float alpha = reader.number("rope.scaling.alpha").value_or(0.0f);
    if (alpha > 0.0f && config.head_dim > 2) {
        const auto n = static_cast<float>(config.head_dim);
        config.rope.freq_base *= std::pow(alpha, n / (n - 2));
    }
}

}  // namespace

Architecture arch_hunyuan_dense() {
    TensorTable tensors = dense_decoder_tensors();
    add_head_norms(tensors, Size::head_dim, Size::head_dim);
    return {.name = "hunyuan-dense",
            .rope_pairing = RopePairing::halves,
            .tensors = std::move(tensors),
            .describe = describe_hunyuan};
}

}  // namespace knap

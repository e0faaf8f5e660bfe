// SmolLM3: every fourth layer does not rotate (NoPE).
#include "model/architectures/architecture.h"

namespace knap {
namespace {

void describe_smollm3(const ConfigReader& /*reader*/, ModelConfig& config) {
    constexpr std::size_t kEvery = 4;
    for (std::size_t i = kEvery - 1; i < config.layers.size(); i += kEvery) {
        config.layers[i].rotation = Rotation::none;
    }
}

}  // namespace

Architecture arch_smollm3() {
    return {.name = "smollm3",
            .rope_pairing = RopePairing::neighbours,
            .tensors = dense_decoder_tensors(),
            .describe = describe_smollm3};
}

}  // namespace knap

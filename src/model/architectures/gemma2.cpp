// Gemma 2: every second layer attends to a window, and scores and logits have soft caps.
#include <utility>

#include "model/architectures/gemma.h"
#include "model/architectures/sliding_window.h"
#include "model/config_reader.h"

namespace knap {
namespace {

float read_cap(const ConfigReader& reader, std::string_view field, float fallback) {
    const float cap = reader.number(field).value_or(fallback);
    if (cap <= 0.0f) {
        reader.fail_field(field, "above 0", cap);
    }
    return cap;
}

void describe_gemma2(const ConfigReader& reader, ModelConfig& config) {
    constexpr int kLayersOfLargest = 46;
    constexpr int kUsualWindow = 4096;
    constexpr int kPattern = 2;
    describe_gemma(kLayersOfLargest, config);
    config.soft_cap = read_cap(reader, "attn_logit_softcapping", 50.0f);
    config.final_soft_cap = read_cap(reader, "final_logit_softcapping", 30.0f);
    const int window = read_window(reader, kUsualWindow);
    if (window == 0) {
        reader.fail_field(kWindow, "1 or more", window);
    }
    config.local_rope = read_local_rope(reader, config.rope);
    set_windows(reader, window, kPattern, config);
}

}  // namespace

Architecture arch_gemma2() {
    TensorTable tensors = gemma_tensors();
    // The head is always the embedding.
    std::erase_if(tensors.of_model, [](const TensorSpec<ModelTensors>& spec) {
        return spec.place == &ModelTensors::output;
    });
    return {.name = "gemma2",
            .rope_pairing = RopePairing::halves,
            .tensors = std::move(tensors),
            .fields = {kWindow},
            .describe = describe_gemma2};
}

}  // namespace knap

// Gemma 3: five layers of six attend to a window, and rotate with another base.
#include <utility>

#include "model/architectures/gemma.h"
#include "model/architectures/sliding_window.h"
#include "model/config_reader.h"

namespace knap {
namespace {

constexpr char kFinalCap[] = "final_logit_softcapping";

void describe_gemma3(const ConfigReader& reader, ModelConfig& config) {
    constexpr int kLayersOfLargest = 62;
    constexpr int kPattern = 6;
    constexpr float kLocalFreqBase = 10000.0f;
    describe_gemma(kLayersOfLargest, config);
    config.final_soft_cap = reader.number(kFinalCap).value_or(0.0f);
    if (const int window = read_window(reader, 0); window > 0) {
        RopeConfig rope = config.rope;
        rope.freq_base = kLocalFreqBase;
        rope.freq_scale = 1.0f;
        config.local_rope = read_local_rope(reader, std::move(rope));
        set_windows(reader, window, kPattern, config);
    }
}

}  // namespace

Architecture arch_gemma3() {
    TensorTable tensors = gemma_tensors();
    add_head_norms(tensors, Size::head_dim, Size::head_dim);
    return {.name = "gemma3",
            .rope_pairing = RopePairing::halves,
            .tensors = std::move(tensors),
            .fields = {kWindow},
            .describe = describe_gemma3};
}

}  // namespace knap

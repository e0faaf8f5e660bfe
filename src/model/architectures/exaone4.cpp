// EXAONE 4: norms only after modules, and of each head. In the model of 64 layers, three of four
// attend to a window, and only those rotate. Files of EXAONE 4.5 have layers for multi-token
// prediction behind them, which libllama ignores too.
#include <utility>

#include "model/architectures/architecture.h"
#include "model/architectures/sliding_window.h"
#include "model/config_reader.h"

namespace knap {
namespace {

void describe_exaone4(const ConfigReader& reader, ModelConfig& config) {
    constexpr int kLayersWithWindows = 64;
    constexpr int kUsualWindow = 4096;
    constexpr int kPattern = 4;
    if (config.n_layers != kLayersWithWindows) {
        return;
    }
    const int window = read_window(reader, kUsualWindow);
    if (window == 0) {
        reader.fail_field(kWindow, "1 or more", window);
    }
    set_windows(reader, window, kPattern, config);
    for (LayerSpec& layer : config.layers) {
        layer.rotation = layer.rotation == Rotation::local ? Rotation::global : Rotation::none;
    }
}

}  // namespace

Architecture arch_exaone4() {
    TensorTable tensors = dense_decoder_tensors();
    drop_pre_norms(tensors);
    add_post_norms(tensors);
    add_head_norms(tensors, Size::head_dim, Size::head_dim);
    tensors.of_model.push_back(
        {"rope_freqs.weight", &ModelTensors::rope_freqs, {Size::n_rot_half}, Presence::optional});
    return {.name = "exaone4",
            .rope_pairing = RopePairing::halves,
            .tensors = std::move(tensors),
            .fields = {kWindow, kPredictLayers},
            .describe = describe_exaone4};
}

}  // namespace knap

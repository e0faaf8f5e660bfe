// OLMo 2 and 3: norms only after modules, and of whole rows of queries and keys. In OLMo 3, three
// layers of four attend to a window and rotate without a longer context.
#include <algorithm>
#include <utility>

#include "model/architectures/architecture.h"
#include "model/architectures/sliding_window.h"
#include "model/config_reader.h"

namespace knap {
namespace {

void describe_olmo2(const ConfigReader& reader, ModelConfig& config) {
    constexpr int kPattern = 4;
    config.head_norm = HeadNorm::whole_row;
    if (const int window = read_window(reader, 0); window > 0) {
        config.local_rope = config.rope;
        config.local_rope.freq_scale = 1.0f;
        config.local_rope.ext_factor = 0.0f;
        config.local_rope.attn_factor = 1.0f;
        set_windows(reader, window, kPattern, config);
    }
}

}  // namespace

Architecture arch_olmo2() {
    TensorTable tensors = dense_decoder_tensors();
    drop_pre_norms(tensors);
    add_post_norms(tensors);
    add_head_norms(tensors, Size::n_embd_q, Size::n_embd_kv);
    std::ranges::find(tensors.of_model, "output.weight", &TensorSpec<ModelTensors>::name)
        ->presence = Presence::required;
    return {.name = "olmo2",
            .rope_pairing = RopePairing::halves,
            .tensors = std::move(tensors),
            .fields = {kWindow},
            .describe = describe_olmo2};
}

}  // namespace knap

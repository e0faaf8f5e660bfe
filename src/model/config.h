// A model's configuration, read from its file and checked once. It never changes after that.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/activation.h"

namespace knap {

class GgufFile;
struct Architecture;

// Which channels of a head rotate as a pair: neighbours (llama in GGUF) or halves (qwen).
enum class RopePairing { neighbours, halves };

struct RopeConfig {
    RopePairing pairing = RopePairing::neighbours;
    int n_rot = 0;  // channels of a head that are rotated
    float freq_base = 10000.0f;
    float freq_scale = 1.0f;  // 1 / scaling factor
    float ext_factor = 0.0f;  // YaRN's extrapolation mix; 0: no YaRN
    float attn_factor = 1.0f;
    float beta_fast = 32.0f;
    float beta_slow = 1.0f;
    int n_ctx_orig = 0;            // context before scaling
    std::string scaling = "none";  // for display: "none", "linear" or "yarn"
    // [n_rot / 2] frequency divisors that the fields of a file imply; empty: none. A file may have
    // divisors as a tensor instead (ModelTensors::rope_freqs).
    std::vector<float> divisors{};
};

// How the queries and keys of a layer rotate: not at all, as ModelConfig::rope says, or as
// ModelConfig::local_rope does.
enum class Rotation : std::uint8_t { none, global, local };

// What the weights of the experts that a row uses are made of: a softmax of the router's logits of
// all experts, or of those of the chosen ones.
enum class Gating : std::uint8_t { softmax, chosen };

// The experts of a layer: MLPs of which a router chooses some for each row.
struct ExpertSpec {
    int n_experts = 0;
    int n_used = 0;       // by a row of the whole model
    int n_ff = 0;         // of one expert
    int n_ff_shared = 0;  // of the expert that every row uses besides; 0: none
    Gating gating = Gating::softmax;
    bool normalises = false;  // the weights of a row's experts are divided by their sum
};

// What one layer computes, beyond what its tensors tell: a norm or bias that it lacks is null.
struct LayerSpec {
    Rotation rotation = Rotation::global;
    int window = 0;  // how many positions a row attends to, its own included; 0: all before it
    std::optional<ExpertSpec> experts{};  // in place of one MLP
};

// Where queries and keys are normalised, if they are: each head or the whole row before they
// rotate, or each head afterwards.
enum class HeadNorm : std::uint8_t { per_head, whole_row, after_rotation };

// Attention that sharpens with the position p: queries are multiplied by
// 1 + scale * ln(1 + floor(p / length)).
struct AttentionTemperature {
    float scale = 0.0f;  // 0: none
    int length = 0;
};

struct ModelConfig {
    std::string architecture;  // general.architecture
    std::string name;          // general.name, may be empty
    int n_layers = 0;
    int n_ignored_layers = 0;  // behind those in the file, for multi-token prediction
    int n_embd = 0;
    int n_heads = 0;
    int n_kv_heads = 0;
    int head_dim = 0;  // the same for queries, keys and values
    int n_ff = 0;      // of layers without experts; 0: unknown
    int n_vocab = 0;
    int n_ctx_train = 0;
    float rms_eps = 1e-5f;
    float attention_scale = 0.0f;  // applied to q k^T
    float soft_cap = 0.0f;         // c: scaled scores s become c tanh(s / c); 0: they do not
    float embedding_scale = 1.0f;  // applied to what tokens begin with
    float residual_scale = 1.0f;   // applied to a module's result before it is added
    float logit_scale = 1.0f;      // applied to logits
    float final_soft_cap = 0.0f;   // of logits, as soft_cap
    HeadNorm head_norm = HeadNorm::per_head;
    Activation activation = Activation::silu;
    AttentionTemperature temperature;
    RopeConfig rope;
    RopeConfig local_rope;  // with the same pairing and as many channels
    std::vector<LayerSpec> layers;

    const LayerSpec& layer(int i) const { return layers[static_cast<std::size_t>(i)]; }
    // [n_layers] LayerSpec::window.
    std::vector<int> windows() const {
        std::vector<int> lengths;
        std::ranges::transform(layers, std::back_inserter(lengths), &LayerSpec::window);
        return lengths;
    }
    bool has(Rotation rotation) const {  // in some layer
        return std::ranges::find(layers, rotation, &LayerSpec::rotation) != layers.end();
    }
    // Of any layer; 0: no layer has experts.
    int n_experts_used() const {
        int n_used = 0;
        for (const LayerSpec& layer : layers) {
            n_used = std::max(n_used, layer.experts ? layer.experts->n_used : 0);
        }
        return n_used;
    }
    const RopeConfig& rope_of(Rotation rotation) const {
        return rotation == Rotation::local ? local_rope : rope;
    }
    int n_layers_of_file() const { return n_layers + n_ignored_layers; }
    int n_embd_q() const { return n_heads * head_dim; }
    int n_embd_kv() const { return n_kv_heads * head_dim; }
    int heads_per_kv() const { return n_heads / n_kv_heads; }
};

// What scores are multiplied by, unless the architecture says otherwise.
float usual_attention_scale(int head_dim);
// What the query of a row at this position is multiplied by.
float query_scale(const AttentionTemperature& temperature, int position);

// Reads and checks the configuration. Throws knap::Error that names the file and the field.
ModelConfig read_config(const GgufFile& file);
// Reads only what attention layers need. Leaves feed-forward length and vocabulary size at 0.
ModelConfig read_attention_config(const GgufFile& file, const Architecture& architecture);

}  // namespace knap

// What a model file says about the model, read and checked once and const ever after.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace knap {

class GgufFile;
struct Architecture;

// Which channels of a head rotate together: neighbours (GGUF's llama) or halves (qwen).
enum class RopePairing { neighbours, halves };

struct RopeConfig {
    RopePairing pairing = RopePairing::neighbours;
    int n_rot = 0;  // channels of a head that rotate
    float freq_base = 10000.0f;
    float freq_scale = 1.0f;  // 1 / scaling factor
    float ext_factor = 0.0f;  // YaRN's extrapolation mix; 0: no YaRN
    float attn_factor = 1.0f;
    float beta_fast = 32.0f;
    float beta_slow = 1.0f;
    int n_ctx_orig = 0;            // context before scaling
    std::string scaling = "none";  // "none", "linear" or "yarn": for people
};

struct ModelConfig {
    std::string architecture;  // general.architecture
    std::string name;          // general.name, may be empty
    int n_layers = 0;
    int n_embd = 0;
    int n_heads = 0;
    int n_kv_heads = 0;
    int head_dim = 0;  // of queries, keys and values alike
    int n_ff = 0;
    int n_vocab = 0;
    int n_ctx_train = 0;
    float rms_eps = 1e-5f;
    float attention_scale = 0.0f;  // applied to q k^T
    RopeConfig rope;

    int n_embd_q() const { return n_heads * head_dim; }
    int n_embd_kv() const { return n_kv_heads * head_dim; }
    int heads_per_kv() const { return n_heads / n_kv_heads; }
};

// Reads and checks the configuration; throws knap::Error naming the file and the field.
ModelConfig read_config(const GgufFile& file);
// The part of it that layers of attention need; feed-forward length and vocabulary are left 0.
ModelConfig read_attention_config(const GgufFile& file, const Architecture& architecture);

}  // namespace knap

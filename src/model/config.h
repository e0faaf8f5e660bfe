// A model's configuration, read from its file and checked once. It never changes after that.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

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
};

struct ModelConfig {
    std::string architecture;  // general.architecture
    std::string name;          // general.name, may be empty
    int n_layers = 0;
    int n_embd = 0;
    int n_heads = 0;
    int n_kv_heads = 0;
    int head_dim = 0;  // the same for queries, keys and values
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

// Reads and checks the configuration. Throws knap::Error that names the file and the field.
ModelConfig read_config(const GgufFile& file);
// Reads only what attention layers need. Leaves feed-forward length and vocabulary size at 0.
ModelConfig read_attention_config(const GgufFile& file, const Architecture& architecture);

}  // namespace knap

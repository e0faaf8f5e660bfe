// A model's tensors, placed where their devices can use them. On the CPU they stay in the mapped
// file, except matrices for which our kernels or ggml's have a faster layout: those are copied into
// it. On an NVIDIA GPU all matrices are in strips if our kernels compute the model.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ggml-cpp.h"

#include "knap/types.h"

#include "model/config.h"

namespace knap {

class Backend;
class GgufFile;
class LayerMap;

// Shapes are in ggml order: a matrix is {n_in, n_out}. Null where the model has no such tensor.
struct LayerWeights {
    ggml_tensor* attn_norm = nullptr;       // {n_embd}
    ggml_tensor* wq = nullptr;              // {n_embd, n_embd_q}
    ggml_tensor* wk = nullptr;              // {n_embd, n_embd_kv}
    ggml_tensor* wv = nullptr;              // {n_embd, n_embd_kv}
    ggml_tensor* wo = nullptr;              // {n_embd_q, n_embd}
    ggml_tensor* bq = nullptr;              // {n_embd_q}
    ggml_tensor* bk = nullptr;              // {n_embd_kv}
    ggml_tensor* bv = nullptr;              // {n_embd_kv}
    ggml_tensor* bo = nullptr;              // {n_embd}
    ggml_tensor* q_norm = nullptr;          // {head_dim}, or {n_embd_q}
    ggml_tensor* k_norm = nullptr;          // {head_dim}, or {n_embd_kv}
    ggml_tensor* attn_post_norm = nullptr;  // {n_embd}, of what attention adds to the stream
    ggml_tensor* attn_sinks = nullptr;      // {n_heads}: scores of a position without a value
    ggml_tensor* ffn_norm = nullptr;        // {n_embd}
    // Of the MLP, or in layers with experts of the one that every row uses.
    ggml_tensor* ffn_gate = nullptr;       // {n_embd, n_ff}
    ggml_tensor* ffn_up = nullptr;         // {n_embd, n_ff}
    ggml_tensor* ffn_down = nullptr;       // {n_ff, n_embd}
    ggml_tensor* ffn_gate_b = nullptr;     // {n_ff}
    ggml_tensor* ffn_up_b = nullptr;       // {n_ff}
    ggml_tensor* ffn_down_b = nullptr;     // {n_embd}
    ggml_tensor* ffn_post_norm = nullptr;  // {n_embd}, of what the MLP adds to the stream
    ggml_tensor* router = nullptr;         // {n_embd, n_experts}
    ggml_tensor* router_b = nullptr;       // {n_experts}
    ggml_tensor* expert_gate = nullptr;    // {n_embd, n_ff, n_experts}
    ggml_tensor* expert_up = nullptr;      // {n_embd, n_ff, n_experts}
    ggml_tensor* expert_down = nullptr;    // {n_ff, n_embd, n_experts}
    ggml_tensor* expert_gate_b = nullptr;  // {n_ff, n_experts}
    ggml_tensor* expert_up_b = nullptr;    // {n_ff, n_experts}
    ggml_tensor* expert_down_b = nullptr;  // {n_embd, n_experts}
    // {n_rot / 2} f32: frequency divisors of Llama 3.1 and later, one tensor per device
    ggml_tensor* rope_freqs = nullptr;
};

// The matrices of a layer, attention's first; those of experts are left out.
std::vector<ggml_tensor*> matrices(const LayerWeights& layer);
// The matrices of a layer's experts; none: it has none.
std::vector<ggml_tensor*> expert_matrices(const LayerWeights& layer);

struct ModelTensors {
    ggml_tensor* token_embd = nullptr;   // {n_embd, n_vocab}
    ggml_tensor* output_norm = nullptr;  // {n_embd}
    // {n_embd, n_vocab}; a tied head is token_embd, or a copy of it in another layout or on another
    // device
    ggml_tensor* output = nullptr;
    ggml_tensor* output_b = nullptr;    // {n_vocab}
    ggml_tensor* rope_freqs = nullptr;  // that of the first layer
    std::vector<LayerWeights> layers;
    // All matrices, the embedding among them, are in the layout of our CUDA kernels
    // (kernels/cuda/strips.h), which no operator of ggml reads.
    bool has_strips = false;
};

// Which layouts other than the file's are allowed.
struct WeightOptions {
    Repack repack = Repack::automatic;
    Kernels kernels = Kernels::automatic;
    // What else our CUDA kernels depend on (placement/strip_coverage.h).
    FlashAttention flash_attention = FlashAttention::automatic;
    CacheType cache_type_k = CacheType::f16;
    CacheType cache_type_v = CacheType::f16;
    bool has_adapter = false;  // which shares the head
    int n_ctx = 0;             // of a session; 0: that of the model
};

struct WeightStatistics {
    std::int64_t total_bytes = 0;  // of all tensors, as stored in the file
    // Bytes read to decode one token: every matrix and norm, but of experts only those that a row
    // uses, and one embedding row
    std::int64_t per_token_bytes = 0;
    std::int64_t n_parameters = 0;
    std::vector<std::pair<std::string, int>> types;  // tensor type -> count, most frequent first
    // The types in ggml's layouts and in those of our kernels: "Q4_0,Q4_K", or "off"
    std::string repacked_types;
    std::string packed_types;
    std::string cuda_kernels;  // "used", or why not: see why_not_strips()
    bool has_tied_head = false;
};

class Weights {
  public:
    // Checks every tensor that the architecture declares (presence, shape, type, size) and places
    // it on its device. `file` must outlive the weights, because mapped tensors point into it.
    static std::unique_ptr<Weights> load(const GgufFile& file,
                                         const ModelConfig& config,
                                         const LayerMap& layers,
                                         const WeightOptions& options,
                                         const std::function<void(double)>& on_progress);
    // The same with everything on one device.
    static std::unique_ptr<Weights> load(const GgufFile& file,
                                         const ModelConfig& config,
                                         Backend& backend,
                                         const WeightOptions& options,
                                         const std::function<void(double)>& on_progress);
    ~Weights();

    const ModelTensors& tensors() const;
    const WeightStatistics& statistics() const;

  private:
    Weights();
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace knap

// The tensors of an architecture, as data: name in the file, shape, and destination; and the check
// of a file against such a table. Weights places the tensors.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "model/config.h"
#include "model/weights.h"

namespace knap {

struct TensorInfo;

// The sizes in shapes. ModelConfig gives their values.
enum class Size {
    one,
    n_embd,
    n_embd_q,
    n_embd_kv,
    head_dim,
    n_heads,
    n_rot_half,
    n_ff,
    n_ff_expert,
    n_ff_shared,
    n_experts,
    n_vocab,
};

struct Shape {
    Size columns;             // ne[0]: the inputs of a matrix, or the length of a vector
    Size rows = Size::one;    // ne[1]: the outputs of a matrix
    Size planes = Size::one;  // ne[2]: matrices of experts
    bool is_vectors = false;  // each row is a vector, such as a bias of one expert
    bool is_matrix() const { return rows != Size::one && !is_vectors; }
};

enum class Presence { required, optional };
// Which layers have a tensor: all, or those whose MLP is of the kind.
enum class InLayers { all, without_experts, with_experts, with_shared_expert };

// `Owner` is ModelTensors for a tensor that the model has once, LayerWeights for one per layer.
template <typename Owner>
struct TensorSpec {
    std::string_view name;  // in a layer: the part after "blk.<layer>."
    ggml_tensor* Owner::*place;
    Shape shape;
    Presence presence;
    InLayers in_layers = InLayers::all;
};

// Tensors of a layer that a file may store as one, their rows one after the other. Each is bound as
// if it stood by itself.
struct FusedTensors {
    std::string_view name;
    std::vector<std::string_view> parts;  // names in of_layer
    // Of a matrix, if it may have them: one for all of its rows, or one for each part.
    std::string_view bias{};
    std::vector<std::string_view> part_biases{};
};

struct TensorTable {
    std::vector<TensorSpec<ModelTensors>> of_model;
    std::vector<TensorSpec<LayerWeights>> of_layer;
    std::vector<FusedTensors> fused{};
};

// Frequency divisors of which a file may have two sets, for contexts beyond the original one and
// for shorter ones.
constexpr std::string_view kLongFactors = "rope_factors_long.weight";
constexpr std::string_view kShortFactors = "rope_factors_short.weight";
// The name of the set that sessions with a context of `n_ctx` do not use; 0: the model's context.
std::string_view unused_factors(const ModelConfig& config, int n_ctx);

// The tensors of one layer: normalised attention without biases.
std::vector<TensorSpec<LayerWeights>> attention_tensors();

// The tensors that every dense decoder here has: embedding, normalised attention with optional
// biases on q, k and v, a gated MLP, a final norm, and a head unless it is tied to the embedding.
TensorTable dense_decoder_tensors();
// The same with optional frequency divisors, and biases everywhere.
TensorTable llama_tensors();

// Norms of queries and keys, of these sizes.
void add_head_norms(TensorTable& table, Size queries, Size keys);
// Norms of what modules add to the stream.
void add_post_norms(TensorTable& table);
// Drops the norms before modules.
void drop_pre_norms(TensorTable& table);
// Gate and up are one matrix, in the place of `up`.
void fuse_gate_and_up(TensorTable& table);

// A tensor of the file and its destination.
struct TensorBinding {
    const TensorInfo* info;
    ggml_tensor** place;
    bool is_matrix;
    bool is_of_experts = false;                // one part for each expert
    int layer = -1;                            // -1: belongs to no layer
    std::shared_ptr<const TensorInfo> part{};  // what `info` points to, if it is part of a tensor
};

// Finds every tensor of `table` in the file. Throws knap::Error when a required one is missing, has
// another shape or an unusable type, or when the file has tensors that the table lacks: ignoring
// them would compute another model. Resizes tensors.layers and sets it to null; the bindings point
// into `tensors`.
std::vector<TensorBinding> bind_tensors(const GgufFile& file,
                                        const ModelConfig& config,
                                        const TensorTable& table,
                                        ModelTensors& tensors);

}  // namespace knap

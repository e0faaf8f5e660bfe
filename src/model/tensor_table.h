// The tensors of an architecture, as data: name in the file, shape, and destination; and the check
// of a file against such a table. Weights places the tensors.
#pragma once

#include <string_view>
#include <vector>

#include "model/config.h"
#include "model/weights.h"

namespace knap {

struct TensorInfo;

// The sizes in shapes. ModelConfig gives their values.
enum class Size { one, n_embd, n_embd_q, n_embd_kv, head_dim, n_rot_half, n_ff, n_vocab };

struct Shape {
    Size columns;           // ne[0]: the inputs of a matrix, or the length of a vector
    Size rows = Size::one;  // ne[1]: the outputs of a matrix
    bool is_matrix() const { return rows != Size::one; }
};

enum class Presence { required, optional };

// `Owner` is ModelTensors for a tensor that the model has once, LayerWeights for one per layer.
template <typename Owner>
struct TensorSpec {
    std::string_view name;  // in a layer: the part after "blk.<layer>."
    ggml_tensor* Owner::*place;
    Shape shape;
    Presence presence;
};

struct TensorTable {
    std::vector<TensorSpec<ModelTensors>> of_model;
    std::vector<TensorSpec<LayerWeights>> of_layer;
};

// The tensors of one layer: normalised attention without biases.
std::vector<TensorSpec<LayerWeights>> attention_tensors();

// The tensors that every dense decoder here has: embedding, normalised attention with optional
// biases on q, k and v, a gated MLP, a final norm, and a head unless it is tied to the embedding.
TensorTable dense_decoder_tensors();

// A tensor of the file and its destination.
struct TensorBinding {
    const TensorInfo* info;
    ggml_tensor** place;
    bool is_matrix;
    int layer = -1;  // -1: belongs to no layer
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

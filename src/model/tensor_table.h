// The tensors that an architecture has, as data: name in the file, shape, and where each goes. The
// check of a file against such a table is here too; placing the tensors is the business of Weights.
#pragma once

#include <string_view>
#include <vector>

#include "model/config.h"
#include "model/weights.h"

namespace knap {

struct TensorInfo;

// Sizes that shapes are made of; what they come to is in the configuration.
enum class Size { one, n_embd, n_embd_q, n_embd_kv, head_dim, n_rot_half, n_ff, n_vocab };

struct Shape {
    Size columns;           // ne[0]: the inputs of a matrix, or the length of a vector
    Size rows = Size::one;  // ne[1]: the outputs of a matrix
    bool is_matrix() const { return rows != Size::one; }
};

enum class Presence { required, optional };

// `Owner` is ModelTensors for a tensor that the model has once, LayerWeights for one that each
// layer has.
template <typename Owner>
struct TensorSpec {
    std::string_view name;  // within a layer: what follows "blk.<layer>."
    ggml_tensor* Owner::*place;
    Shape shape;
    Presence presence;
};

struct TensorTable {
    std::vector<TensorSpec<ModelTensors>> of_model;
    std::vector<TensorSpec<LayerWeights>> of_layer;
};

// Of one layer: normalised attention without biases.
std::vector<TensorSpec<LayerWeights>> attention_tensors();

// What every dense decoder here has: embedding, normalised attention with optional biases on q, k
// and v, a gated MLP, a final norm, and a head unless it is tied to the embedding.
TensorTable dense_decoder_tensors();

// A tensor of the file and the place that it is meant for.
struct TensorBinding {
    const TensorInfo* info;
    ggml_tensor** place;
    bool is_matrix;
    int layer = -1;  // that it belongs to; -1: to none
};

// Finds every tensor of `table` in the file. Throws knap::Error when a required one is missing,
// when one has another shape or a type that cannot serve, and when the file has tensors that the
// table does not know: leaving them out would compute another model. `tensors` gets its layers, all
// places null; the bindings point into it.
std::vector<TensorBinding> bind_tensors(const GgufFile& file,
                                        const ModelConfig& config,
                                        const TensorTable& table,
                                        ModelTensors& tensors);

}  // namespace knap

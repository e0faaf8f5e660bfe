#include "tools/make_model/random_tensors.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "model/architectures/architecture.h"
#include "model/tensor_table.h"
#include "model/weight_type.h"

namespace knap {

namespace {

// Sizes of the shape, as those of a file's configuration in model/tensor_table.
std::int64_t size_in(const ModelShape& shape, Size size) {
    switch (size) {
        case Size::one:
            return 1;
        case Size::n_embd:
            return shape.n_embd;
        case Size::n_embd_q:
            return shape.n_embd_q();
        case Size::n_embd_kv:
            return shape.n_embd_kv();
        case Size::head_dim:
            return shape.head_dim;
        case Size::n_heads:
            return shape.n_heads;
        case Size::n_rot_half:
            return (shape.n_rot > 0 ? shape.n_rot : shape.head_dim) / 2;
        case Size::n_ff:
            return shape.n_ff;
        case Size::n_ff_expert:
            return shape.n_ff_expert();
        case Size::n_ff_shared:
            return shape.experts.n_ff_shared;
        case Size::n_experts:
            return shape.experts.n_experts;
        case Size::n_vocab:
            return shape.n_vocab;
    }
    KNAP_ASSERT(false, "every size has a value");
    return 0;
}

bool is_in(InLayers layers, const ExpertShape& experts) {
    switch (layers) {
        case InLayers::all:
            return true;
        case InLayers::without_experts:
            return experts.n_experts == 0;
        case InLayers::with_experts:
            return experts.n_experts > 0;
        case InLayers::with_shared_expert:
            return experts.n_ff_shared > 0;
    }
    return false;
}

// Only such files of phi3 have divisors; Phi-4 has not.
bool stretches_long_contexts(const ModelShape& shape) {
    return shape.architecture == "phi3" &&
           std::ranges::any_of(shape.fields, [](const ShapeField& field) {
               return std::string_view(field.name) == "rope.scaling.attn_factor";
           });
}

// What files of checkpoints have of what their architecture leaves open.
bool has_optional(const ModelShape& shape, std::string_view name) {
    if (name == "output.weight") {
        return !shape.has_tied_head;
    }
    if (name == "rope_freqs.weight") {
        return shape.rope_scaling.has_value();
    }
    if (name == kLongFactors || name == kShortFactors) {
        return stretches_long_contexts(shape);
    }
    if (name == "attn_q.bias" || name == "attn_k.bias" || name == "attn_v.bias") {
        constexpr std::string_view kBiased[] = {"glm4", "qwen2", "seed_oss"};
        return std::ranges::find(kBiased, shape.architecture) != std::end(kBiased);
    }
    return false;
}

// Whether files of checkpoints have these as one tensor.
bool fuses(const ModelShape& shape, const FusedTensors& fused) {
    const bool has_name_of_a_part =
        std::ranges::find(fused.parts, fused.name) != fused.parts.end();  // no file splits those
    return has_name_of_a_part || shape.architecture == "phi3";
}

const FusedTensors* whole_of(const TensorTable& table,
                             const ModelShape& shape,
                             std::string_view part) {
    const auto found = std::ranges::find_if(table.fused, [&](const FusedTensors& fused) {
        return std::ranges::find(fused.parts, part) != fused.parts.end() && fuses(shape, fused);
    });
    return found == table.fused.end() ? nullptr : &*found;
}

// Divisors for contexts up to the original one, or beyond.
std::vector<float> factors(int n_pairs, bool is_long) {
    std::vector<float> divisors(static_cast<std::size_t>(n_pairs), 1.0f);
    for (std::size_t i = 0; is_long && i < divisors.size(); ++i) {
        divisors[i] += static_cast<float>(i);
    }
    return divisors;
}

// Values of a vector of this name, without "blk.N.".
void choose_values(RandomTensor& tensor, std::string_view name, const ModelShape& shape) {
    if (name.ends_with("norm.weight")) {
        tensor.mean = 1.0f;
        tensor.deviation = 0.1f;
    } else if (name.ends_with(".bias")) {
        tensor.deviation = 0.05f;
    } else if (name == "attn_sinks.weight") {
        tensor.deviation = 1.0f;
    } else if (name == "rope_freqs.weight") {
        tensor.values = rope_frequency_divisors(shape);
    } else if (name == kLongFactors || name == kShortFactors) {
        tensor.values = factors(static_cast<int>(tensor.n_in), name == kLongFactors);
    } else {
        fail("shape ", shape.name, ": expected values for tensors ", name,
             " (tools/make_model/random_tensors), found none");
    }
}

// As the table says, but for the type of a matrix.
template <typename Owner>
RandomTensor declare(const TensorSpec<Owner>& spec,
                     const std::string& prefix,
                     const ModelShape& shape,
                     ggml_type type) {
    const std::int64_t n_planes = size_in(shape, spec.shape.planes);
    RandomTensor tensor{.name = concat(prefix, spec.name),
                        .n_in = size_in(shape, spec.shape.columns),
                        .n_rows = size_in(shape, spec.shape.rows) * n_planes,
                        .n_planes = n_planes};
    if (spec.shape.is_matrix()) {
        tensor.type = type;
        // The variance 1 / n_in keeps activations near unit size from layer to layer.
        tensor.deviation = 1.0f / std::sqrt(float(tensor.n_in));
    } else {
        choose_values(tensor, spec.name, shape);
    }
    return tensor;
}

void add_ends(std::vector<RandomTensor>& tensors,
              const TensorTable& table,
              const ModelShape& shape,
              const WeightRecipe& recipe) {
    for (const TensorSpec<ModelTensors>& spec : table.of_model) {
        if (spec.presence == Presence::required || has_optional(shape, spec.name)) {
            const bool is_embedding = spec.place == &ModelTensors::token_embd;
            tensors.push_back(
                declare(spec, "", shape, is_embedding ? recipe.embedding : recipe.head));
        }
    }
}

ggml_type type_in_layer(ggml_tensor* LayerWeights::*place,
                        const WeightRecipe& recipe,
                        ggml_type sensitive) {
    if (place == &LayerWeights::router) {
        return GGML_TYPE_F32;
    }
    if (place == &LayerWeights::wv || place == &LayerWeights::ffn_down) {
        return sensitive;
    }
    if (place == &LayerWeights::expert_down) {
        return recipe.experts.value_or(sensitive);
    }
    const bool is_of_experts =
        place == &LayerWeights::expert_gate || place == &LayerWeights::expert_up;
    return is_of_experts ? recipe.experts.value_or(recipe.base) : recipe.base;
}

void add_layer(std::vector<RandomTensor>& tensors,
               const TensorTable& table,
               const ModelShape& shape,
               const WeightRecipe& recipe,
               int layer) {
    const std::string prefix = concat("blk.", layer, ".");
    const ggml_type sensitive = recipe.sensitive_type(layer, shape.n_layers);
    for (const TensorSpec<LayerWeights>& spec : table.of_layer) {
        const bool is_there = spec.presence == Presence::required || has_optional(shape, spec.name);
        if (!is_there || !is_in(spec.in_layers, shape.experts)) {
            continue;
        }
        RandomTensor tensor =
            declare(spec, prefix, shape, type_in_layer(spec.place, recipe, sensitive));
        if (spec.place == &LayerWeights::router) {
            // Wide margins between experts: choices that rounding decides are rare.
            constexpr float kMargin = 4;
            tensor.deviation *= kMargin;
        }
        if (const FusedTensors* whole = whole_of(table, shape, spec.name)) {
            tensor.name = concat(prefix, whole->name);
            const auto parts_before = std::ranges::find(tensors, tensor.name, &RandomTensor::name);
            if (parts_before != tensors.end()) {
                parts_before->type = tensor.type;
                parts_before->n_rows += tensor.n_rows;
                continue;
            }
        }
        tensors.push_back(std::move(tensor));
    }
}

// Of the same architecture, if there is one.
std::string_view wider_shape(const ModelShape& shape) {
    const auto found = std::ranges::find_if(known_shapes(), [&](const ModelShape& other) {
        return other.architecture == shape.architecture && other.name.starts_with("small-");
    });
    return found != known_shapes().end() ? found->name : "small-llama";
}

void check_rows(const RandomTensor& tensor, const ModelShape& shape) {
    const std::int64_t block = ggml_blck_size(tensor.type);
    if (tensor.n_in % block != 0) {
        fail("type ", type_label(tensor.type), " stores blocks of ", block, " values, but ",
             tensor.name, " of shape ", shape.name, " has rows of ", tensor.n_in,
             "; choose another type or a shape with wider rows, such as ", wider_shape(shape));
    }
}

}  // namespace

std::vector<RandomTensor> declare_random_tensors(const ModelShape& shape,
                                                 const WeightRecipe& recipe) {
    if (recipe.experts && shape.experts.n_experts == 0) {
        fail(
            "--type: expected a shape with experts, such as tiny-gpt-oss, for a type that has "
            "another one for experts (",
            type_label(*recipe.experts), "); found ", shape.name);
    }
    const Architecture* architecture = find_architecture(shape.architecture);
    if (architecture == nullptr) {
        fail("shape ", shape.name, ": expected an architecture that knap runs, found ",
             shape.architecture);
    }
    const TensorTable& table = architecture->tensors;
    std::vector<RandomTensor> tensors;
    add_ends(tensors, table, shape, recipe);
    for (int layer = 0; layer < shape.n_layers; ++layer) {
        add_layer(tensors, table, shape, recipe, layer);
    }
    for (const RandomTensor& tensor : tensors) {
        check_rows(tensor, shape);
    }
    return tensors;
}

}  // namespace knap

#include "model/tensor_table.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "base/quoted.h"
#include "base/text.h"
#include "model/gguf/gguf_file.h"
#include "model/weight_type.h"

namespace knap {
namespace {

// Of a layer; -1: of none.
std::int64_t value_of(Size size, const ModelConfig& config, int layer) {
    const ExpertSpec experts =
        layer >= 0 ? config.layer(layer).experts.value_or(ExpertSpec{}) : ExpertSpec{};
    switch (size) {
        case Size::one:
            return 1;
        case Size::n_embd:
            return config.n_embd;
        case Size::n_embd_q:
            return config.n_embd_q();
        case Size::n_embd_kv:
            return config.n_embd_kv();
        case Size::head_dim:
            return config.head_dim;
        case Size::n_heads:
            return config.n_heads;
        case Size::n_rot_half:
            return config.rope.n_rot / 2;
        case Size::n_ff:
            return config.n_ff;
        case Size::n_ff_expert:
            return experts.n_ff;
        case Size::n_ff_shared:
            return experts.n_ff_shared;
        case Size::n_experts:
            return experts.n_experts;
        case Size::n_vocab:
            return config.n_vocab;
    }
    KNAP_ASSERT(false, "every size has a value");
    return 0;
}

bool is_in(InLayers layers, const ModelConfig& config, int layer) {
    const bool has_experts = layer >= 0 && config.layer(layer).experts.has_value();
    switch (layers) {
        case InLayers::all:
            return true;
        case InLayers::without_experts:
            return !has_experts;
        case InLayers::with_experts:
            return has_experts;
        case InLayers::with_shared_expert:
            return has_experts && config.layer(layer).experts->n_ff_shared > 0;
    }
    return false;
}

std::string describe(const std::int64_t* ne) {
    int n_dims = GGML_MAX_DIMS;
    while (n_dims > 1 && ne[n_dims - 1] == 1) {
        --n_dims;
    }
    std::string text = "{";
    for (int i = 0; i < n_dims; ++i) {
        text += concat(i > 0 ? ", " : "", ne[i]);
    }
    return text + "}";
}

class Binder {
  public:
    Binder(const GgufFile& file, const ModelConfig& config) : file_(file), config_(config) {}

    template <typename Owner>
    void bind(const std::vector<TensorSpec<Owner>>& specs,
              const std::string& prefix,
              Owner& owner,
              int layer) {
        for (const TensorSpec<Owner>& spec : specs) {
            if (!is_in(spec.in_layers, config_, layer)) {
                continue;
            }
            const std::string name = prefix + std::string(spec.name);
            const auto part = parts_.find(name);
            const TensorInfo* info = part != parts_.end() ? part->second.get() : file_.find(name);
            if (info == nullptr) {
                if (spec.presence == Presence::required) {
                    fail(file_.path().string(), ": tensor ", name, ": expected by architecture ",
                         config_.architecture, ", found none");
                }
                continue;
            }
            check_shape(*info, spec.shape, layer);
            check_type(*info, spec.shape.is_matrix());
            const bool is_of_experts =
                spec.shape.planes == Size::n_experts || spec.shape.is_vectors;
            bindings_.push_back({info, &(owner.*spec.place), spec.shape.is_matrix(), is_of_experts,
                                 layer, part != parts_.end() ? part->second : nullptr});
        }
    }

    // Cuts the fused tensors of a layer into parts, for bind() to find.
    void cut(const TensorTable& table, const std::string& prefix, int layer) {
        for (const FusedTensors& fused : table.fused) {
            const TensorInfo* whole = find(prefix, fused.name);
            const TensorInfo* bias = fused.bias.empty() ? nullptr : find(prefix, fused.bias);
            if (whole != nullptr) {
                cut(*whole, fused.parts, table.of_layer, prefix, layer);
                check_part_biases(fused, prefix);
            }
            if (bias != nullptr && whole == nullptr) {
                fail_alone(prefix, fused.bias, fused.name);
            }
            if (bias != nullptr) {
                cut(*bias, fused.part_biases, table.of_layer, prefix, layer);
            }
        }
    }

    std::vector<TensorBinding> finish() {
        std::unordered_set<const TensorInfo*> bound = cut_;
        for (const TensorBinding& binding : bindings_) {
            bound.insert(binding.info);
        }
        for (const TensorInfo& info : file_.tensors()) {
            if (!bound.contains(&info) && !is_of_ignored_layer(info.name)) {
                fail(file_.path().string(), ": tensor ", in_quotes(info.name),
                     " is not part of architecture ", config_.architecture, " with ",
                     config_.n_layers, " layers");
            }
        }
        return std::move(bindings_);
    }

  private:
    const TensorInfo* find(const std::string& prefix, std::string_view name) const {
        return file_.find(prefix + std::string(name));
    }

    [[noreturn]] void fail_alone(const std::string& prefix,
                                 std::string_view name,
                                 std::string_view missing) const {
        fail(file_.path().string(), ": tensor ", prefix, name, ": expected ", prefix, missing,
             " beside it, found none");
    }

    // libllama adds the biases of its parts to a fused product only if there are all of them.
    void check_part_biases(const FusedTensors& fused, const std::string& prefix) const {
        const auto is_there = [&](std::string_view name) { return find(prefix, name) != nullptr; };
        const auto present = std::ranges::find_if(fused.part_biases, is_there);
        const auto missing = std::ranges::find_if_not(fused.part_biases, is_there);
        if (present != fused.part_biases.end() && missing != fused.part_biases.end()) {
            fail_alone(prefix, *present, *missing);
        }
    }

    void cut(const TensorInfo& whole,
             const std::vector<std::string_view>& parts,
             const std::vector<TensorSpec<LayerWeights>>& specs,
             const std::string& prefix,
             int layer) {
        const auto spec_of = [&](std::string_view name) {
            return std::ranges::find(specs, name, &TensorSpec<LayerWeights>::name);
        };
        const bool is_matrix = spec_of(parts.front())->shape.is_matrix();
        const int axis = is_matrix ? 1 : 0;
        std::int64_t expected[GGML_MAX_DIMS] = {whole.ne[0], 1, 1, 1};
        expected[axis] = 0;
        for (const std::string_view name : parts) {
            const Shape shape = spec_of(name)->shape;
            expected[axis] += value_of(is_matrix ? shape.rows : shape.columns, config_, layer);
        }
        check_extents(whole, expected);
        check_type(whole, is_matrix);
        cut_.insert(&whole);
        std::int64_t first = 0;
        for (const std::string_view name : parts) {
            const Shape shape = spec_of(name)->shape;
            const std::int64_t n = value_of(is_matrix ? shape.rows : shape.columns, config_, layer);
            const std::size_t row_bytes =
                is_matrix ? ggml_row_size(whole.type, whole.ne[0]) : sizeof(float);
            const std::size_t skipped = static_cast<std::size_t>(first) * row_bytes;
            auto part = std::make_shared<TensorInfo>(whole);
            part->name = prefix + std::string(name);
            part->ne[axis] = n;
            part->n_bytes = static_cast<std::size_t>(n) * row_bytes;
            part->offset += skipped;
            part->data += skipped;
            first += n;
            parts_[part->name] = std::move(part);
        }
    }

    bool is_of_ignored_layer(std::string_view name) const {
        for (int layer = config_.n_layers; layer < config_.n_layers_of_file(); ++layer) {
            if (name.starts_with(concat("blk.", layer, "."))) {
                return true;
            }
        }
        return false;
    }

    void check_shape(const TensorInfo& info, Shape shape, int layer) const {
        const std::int64_t expected[GGML_MAX_DIMS] = {value_of(shape.columns, config_, layer),
                                                      value_of(shape.rows, config_, layer),
                                                      value_of(shape.planes, config_, layer), 1};
        check_extents(info, expected);
    }

    void check_extents(const TensorInfo& info, const std::int64_t* expected) const {
        if (!std::equal(expected, expected + GGML_MAX_DIMS, info.ne)) {
            fail(file_.path().string(), ": tensor ", info.name, ": expected shape ",
                 describe(expected), ", found ", describe(info.ne));
        }
    }

    // ggml adds and multiplies vectors only in F32. A matrix may have any type made for weights.
    void check_type(const TensorInfo& info, bool is_matrix) const {
        if (is_matrix ? !is_weight_type(info.type) : info.type != GGML_TYPE_F32) {
            fail(file_.path().string(), ": tensor ", info.name, ": expected type ",
                 is_matrix ? "F32, F16, BF16 or a quantised one" : "F32", ", found ",
                 type_label(info.type));
        }
    }

    const GgufFile& file_;
    const ModelConfig& config_;
    std::vector<TensorBinding> bindings_;
    std::unordered_map<std::string, std::shared_ptr<const TensorInfo>> parts_;  // by name
    std::unordered_set<const TensorInfo*> cut_;                                 // into these
};

}  // namespace

std::vector<TensorSpec<LayerWeights>> attention_tensors() {
    using enum Presence;
    using enum Size;
    return {{"attn_norm.weight", &LayerWeights::attn_norm, {n_embd}, required},
            {"attn_q.weight", &LayerWeights::wq, {n_embd, n_embd_q}, required},
            {"attn_k.weight", &LayerWeights::wk, {n_embd, n_embd_kv}, required},
            {"attn_v.weight", &LayerWeights::wv, {n_embd, n_embd_kv}, required},
            {"attn_output.weight", &LayerWeights::wo, {n_embd_q, n_embd}, required}};
}

TensorTable dense_decoder_tensors() {
    using enum Presence;
    using enum Size;
    TensorTable table{
        .of_model = {{"token_embd.weight", &ModelTensors::token_embd, {n_embd, n_vocab}, required},
                     {"output_norm.weight", &ModelTensors::output_norm, {n_embd}, required},
                     {"output.weight", &ModelTensors::output, {n_embd, n_vocab}, optional}},
        .of_layer = attention_tensors(),
    };
    table.of_layer.insert(
        table.of_layer.end(),
        {
            {"attn_q.bias", &LayerWeights::bq, {n_embd_q}, optional},
            {"attn_k.bias", &LayerWeights::bk, {n_embd_kv}, optional},
            {"attn_v.bias", &LayerWeights::bv, {n_embd_kv}, optional},
            {"ffn_norm.weight", &LayerWeights::ffn_norm, {n_embd}, required},
            {"ffn_gate.weight", &LayerWeights::ffn_gate, {n_embd, n_ff}, required},
            {"ffn_up.weight", &LayerWeights::ffn_up, {n_embd, n_ff}, required},
            {"ffn_down.weight", &LayerWeights::ffn_down, {n_ff, n_embd}, required},
        });
    table.fused = {{.name = "attn_qkv.weight",
                    .parts = {"attn_q.weight", "attn_k.weight", "attn_v.weight"},
                    .bias = "attn_qkv.bias",
                    .part_biases = {"attn_q.bias", "attn_k.bias", "attn_v.bias"}}};
    return table;
}

TensorTable llama_tensors() {
    TensorTable tensors = dense_decoder_tensors();
    tensors.of_model.push_back(
        {"rope_freqs.weight", &ModelTensors::rope_freqs, {Size::n_rot_half}, Presence::optional});
    tensors.of_layer.insert(
        tensors.of_layer.end(),
        {
            {"attn_output.bias", &LayerWeights::bo, {Size::n_embd}, Presence::optional},
            {"ffn_gate.bias", &LayerWeights::ffn_gate_b, {Size::n_ff}, Presence::optional},
            {"ffn_up.bias", &LayerWeights::ffn_up_b, {Size::n_ff}, Presence::optional},
            {"ffn_down.bias", &LayerWeights::ffn_down_b, {Size::n_embd}, Presence::optional},
        });
    return tensors;
}

std::string_view unused_factors(const ModelConfig& config, int n_ctx) {
    const int n = n_ctx > 0 ? n_ctx : config.n_ctx_train;
    return n > config.rope.n_ctx_orig ? kShortFactors : kLongFactors;
}

void add_head_norms(TensorTable& table, Size queries, Size keys) {
    table.of_layer.insert(
        table.of_layer.end(),
        {
            {"attn_q_norm.weight", &LayerWeights::q_norm, {queries}, Presence::required},
            {"attn_k_norm.weight", &LayerWeights::k_norm, {keys}, Presence::required},
        });
}

void add_post_norms(TensorTable& table) {
    using enum Presence;
    table.of_layer.insert(
        table.of_layer.end(),
        {
            {"post_attention_norm.weight", &LayerWeights::attn_post_norm, {Size::n_embd}, required},
            {"post_ffw_norm.weight", &LayerWeights::ffn_post_norm, {Size::n_embd}, required},
        });
}

void drop_pre_norms(TensorTable& table) {
    std::erase_if(table.of_layer, [](const TensorSpec<LayerWeights>& spec) {
        return spec.place == &LayerWeights::attn_norm || spec.place == &LayerWeights::ffn_norm;
    });
}

void fuse_gate_and_up(TensorTable& table) {
    table.fused.push_back({"ffn_up.weight", {"ffn_gate.weight", "ffn_up.weight"}});
}

std::vector<TensorBinding> bind_tensors(const GgufFile& file,
                                        const ModelConfig& config,
                                        const TensorTable& table,
                                        ModelTensors& tensors) {
    tensors.layers.assign(static_cast<std::size_t>(config.n_layers), LayerWeights{});
    Binder binder(file, config);
    binder.bind(table.of_model, "", tensors, -1);
    for (int layer = 0; layer < config.n_layers; ++layer) {
        const std::string prefix = concat("blk.", layer, ".");
        binder.cut(table, prefix, layer);
        binder.bind(table.of_layer, prefix, tensors.layers[static_cast<std::size_t>(layer)], layer);
    }
    return binder.finish();
}

}  // namespace knap

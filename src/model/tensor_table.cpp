#include "model/tensor_table.h"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "base/quoted.h"
#include "base/text.h"
#include "model/gguf/gguf_file.h"
#include "model/weight_type.h"

namespace knap {
namespace {

std::int64_t value_of(Size size, const ModelConfig& config) {
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
        case Size::n_rot_half:
            return config.rope.n_rot / 2;
        case Size::n_ff:
            return config.n_ff;
        case Size::n_vocab:
            return config.n_vocab;
    }
    KNAP_ASSERT(false, "every size has a value");
    return 0;
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
            const std::string name = prefix + std::string(spec.name);
            const TensorInfo* info = file_.find(name);
            if (info == nullptr) {
                if (spec.presence == Presence::required) {
                    fail(file_.path().string(), ": tensor ", name, ": expected by architecture ",
                         config_.architecture, ", found none");
                }
                continue;
            }
            check_shape(*info, spec.shape);
            check_type(*info, spec.shape.is_matrix());
            bindings_.push_back({info, &(owner.*spec.place), spec.shape.is_matrix(), layer});
        }
    }

    std::vector<TensorBinding> finish() {
        std::unordered_set<const TensorInfo*> bound;
        for (const TensorBinding& binding : bindings_) {
            bound.insert(binding.info);
        }
        for (const TensorInfo& info : file_.tensors()) {
            if (!bound.contains(&info)) {
                fail(file_.path().string(), ": tensor ", in_quotes(info.name),
                     " is not part of architecture ", config_.architecture, " with ",
                     config_.n_layers, " layers");
            }
        }
        return std::move(bindings_);
    }

  private:
    void check_shape(const TensorInfo& info, Shape shape) const {
        const std::int64_t expected[GGML_MAX_DIMS] = {value_of(shape.columns, config_),
                                                      value_of(shape.rows, config_), 1, 1};
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
    return table;
}

std::vector<TensorBinding> bind_tensors(const GgufFile& file,
                                        const ModelConfig& config,
                                        const TensorTable& table,
                                        ModelTensors& tensors) {
    tensors.layers.assign(static_cast<std::size_t>(config.n_layers), LayerWeights{});
    Binder binder(file, config);
    binder.bind(table.of_model, "", tensors, -1);
    for (int layer = 0; layer < config.n_layers; ++layer) {
        binder.bind(table.of_layer, concat("blk.", layer, "."),
                    tensors.layers[static_cast<std::size_t>(layer)], layer);
    }
    return binder.finish();
}

}  // namespace knap

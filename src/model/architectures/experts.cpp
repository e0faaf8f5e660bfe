#include "model/architectures/experts.h"

#include <algorithm>

#include "model/config_reader.h"

namespace knap {
namespace {

constexpr int kMaxExperts = 1024;  // libllama's limit
// Every expert of a row is a term of a sum, which ggml adds one by one.
constexpr int kMaxUsed = 64;
constexpr int kMaxLength = 1 << 20;

constexpr std::string_view kUsed = "expert_used_count";
constexpr std::string_view kLength = "expert_feed_forward_length";
constexpr std::string_view kSharedLength = "expert_shared_feed_forward_length";

// Files may give it for each layer, but libllama chooses as many experts as its first layer uses in
// all layers of these architectures, and then adds up another number of them.
int read_used(const ConfigReader& reader, const ModelConfig& config, int n_experts) {
    const int most = std::min(n_experts, kMaxUsed);
    const auto n_used = reader.uniform_count(kUsed, config.n_layers_of_file(), most);
    if (!n_used) {
        reader.fail_field(kUsed, concat("1 to ", most), "no such key");
    }
    return *n_used;
}

int read_length(const ConfigReader& reader,
                const ExpertRules& rules,
                const ModelConfig& config,
                int n_used) {
    using enum ExpertRules::Length;
    if (rules.length == feed_forward) {
        return config.n_ff;
    }
    const auto length = reader.uniform_count(kLength, config.n_layers_of_file(), kMaxLength);
    if (length) {
        return *length;
    }
    if (rules.length == own || config.n_ff < n_used) {
        reader.fail_field(kLength, concat("1 to ", kMaxLength), "no such key");
    }
    return config.n_ff / n_used;
}

int read_shared_length(const ConfigReader& reader, const ExpertRules& rules) {
    const auto length = reader.file().integer(reader.key(kSharedLength));
    if (!rules.may_have_shared || length.value_or(0) == 0) {
        return 0;
    }
    return reader.count(kSharedLength, kMaxLength);
}

}  // namespace

void read_experts(const ConfigReader& reader, const ExpertRules& rules, ModelConfig& config) {
    if (rules.may_be_dense && reader.file().integer(reader.key(kExpertCount)).value_or(0) == 0) {
        return;
    }
    ExpertSpec spec{.n_experts = reader.count(kExpertCount, kMaxExperts),
                    .gating = rules.gating,
                    .normalises = rules.normalises};
    if (spec.n_experts == 1) {
        reader.fail_unsupported(
            kExpertCount, concat("2 to ", kMaxExperts), 1, "a router without a choice",
            concat(reader.architecture(), rules.may_be_dense ? " without experts" : " with more"));
    }
    spec.n_used = read_used(reader, config, spec.n_experts);
    spec.n_ff = read_length(reader, rules, config, spec.n_used);
    spec.n_ff_shared = read_shared_length(reader, rules);
    for (LayerSpec& layer : config.layers) {
        layer.experts = spec;
    }
}

void add_experts(TensorTable& table, bool has_biases) {
    using enum Size;
    using enum Presence;
    using enum InLayers;
    for (TensorSpec<LayerWeights>& spec : table.of_layer) {
        for (const std::string_view part : {"ffn_gate.", "ffn_up.", "ffn_down."}) {
            spec.in_layers = spec.name.starts_with(part) ? without_experts : spec.in_layers;
        }
    }
    const auto add = [&](std::string_view name, ggml_tensor* LayerWeights::*place, Shape shape) {
        table.of_layer.push_back({name, place, shape, required, with_experts});
    };
    add("ffn_gate_inp.weight", &LayerWeights::router, {n_embd, n_experts});
    add("ffn_gate_exps.weight", &LayerWeights::expert_gate, {n_embd, n_ff_expert, n_experts});
    add("ffn_up_exps.weight", &LayerWeights::expert_up, {n_embd, n_ff_expert, n_experts});
    add("ffn_down_exps.weight", &LayerWeights::expert_down, {n_ff_expert, n_embd, n_experts});
    if (has_biases) {
        const auto add_vectors = [&](std::string_view name, ggml_tensor* LayerWeights::*place,
                                     Size length) {
            add(name, place, {.columns = length, .rows = n_experts, .is_vectors = true});
        };
        add("ffn_gate_inp.bias", &LayerWeights::router_b, {n_experts});
        add_vectors("ffn_gate_exps.bias", &LayerWeights::expert_gate_b, n_ff_expert);
        add_vectors("ffn_up_exps.bias", &LayerWeights::expert_up_b, n_ff_expert);
        add_vectors("ffn_down_exps.bias", &LayerWeights::expert_down_b, n_embd);
    }
}

void add_shared_expert(TensorTable& table) {
    using enum Size;
    const auto add = [&](std::string_view name, ggml_tensor* LayerWeights::*place, Shape shape) {
        table.of_layer.push_back(
            {name, place, shape, Presence::required, InLayers::with_shared_expert});
    };
    add("ffn_gate_shexp.weight", &LayerWeights::ffn_gate, {n_embd, n_ff_shared});
    add("ffn_up_shexp.weight", &LayerWeights::ffn_up, {n_embd, n_ff_shared});
    add("ffn_down_shexp.weight", &LayerWeights::ffn_down, {n_ff_shared, n_embd});
}

}  // namespace knap

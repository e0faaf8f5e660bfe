#include "model/weights.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <set>

#include "base/error.h"
#include "device/layer_map.h"
#include "model/architectures/architecture.h"
#include "model/gguf/gguf_file.h"
#include "model/placement/strip_coverage.h"
#include "model/placement/weight_placement.h"
#include "model/tensor_table.h"
#include "model/weight_type.h"

namespace knap {
namespace {

std::vector<std::pair<std::string, int>> count_types(const std::vector<TensorBinding>& bindings) {
    std::map<std::string, int> counts;
    for (const TensorBinding& binding : bindings) {
        ++counts[type_label(binding.info->type)];
    }
    std::vector<std::pair<std::string, int>> types(counts.begin(), counts.end());
    std::stable_sort(types.begin(), types.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    return types;
}

// Of a tensor of experts a row reads its share.
std::int64_t bytes_per_token(const TensorBinding& binding, const ModelConfig& config) {
    const auto n_bytes = static_cast<std::int64_t>(binding.info->n_bytes);
    if (!binding.is_of_experts) {
        return n_bytes;
    }
    const ExpertSpec& experts = *config.layer(binding.layer).experts;
    return n_bytes / experts.n_experts * experts.n_used;
}

void count_stored(const std::vector<TensorBinding>& bindings,
                  const ModelConfig& config,
                  const ModelTensors& tensors,
                  WeightStatistics& statistics) {
    for (const TensorBinding& binding : bindings) {
        const TensorInfo& info = *binding.info;
        const auto n_bytes = static_cast<std::int64_t>(info.n_bytes);
        statistics.total_bytes += n_bytes;
        statistics.n_parameters += info.ne[0] * info.ne[1] * info.ne[2] * info.ne[3];
        if (binding.place == &tensors.token_embd) {
            statistics.per_token_bytes +=
                static_cast<std::int64_t>(ggml_row_size(info.type, info.ne[0]));
            statistics.per_token_bytes += statistics.has_tied_head ? n_bytes : 0;
        } else {
            statistics.per_token_bytes += bytes_per_token(binding, config);
        }
    }
    statistics.types = count_types(bindings);
}

std::string list_types(const std::vector<Placement>& placements,
                       std::initializer_list<Placement::Kind> kinds) {
    std::set<std::string> types;
    for (const Placement& placement : placements) {
        if (std::ranges::find(kinds, placement.kind) != kinds.end()) {
            types.insert(type_label(placement.info->type));
        }
    }
    return types.empty() ? "off" : join(types, ",");
}

void count_layouts(const std::vector<Placement>& placements, WeightStatistics& statistics) {
    using enum Placement::Kind;
    statistics.repacked_types = list_types(placements, {repacked});
    statistics.packed_types = list_types(placements, {packed, strips});
}

}  // namespace

std::vector<ggml_tensor*> matrices(const LayerWeights& layer) {
    std::vector<ggml_tensor*> all{layer.wq,       layer.wk,     layer.wv,       layer.wo,
                                  layer.ffn_gate, layer.ffn_up, layer.ffn_down, layer.router};
    std::erase(all, nullptr);
    return all;
}

std::vector<ggml_tensor*> expert_matrices(const LayerWeights& layer) {
    return layer.expert_down == nullptr
               ? std::vector<ggml_tensor*>()
               : std::vector<ggml_tensor*>{layer.expert_gate, layer.expert_up, layer.expert_down};
}

struct Weights::Impl {
    ModelTensors tensors;
    WeightStatistics statistics;
    PlacedTensors placed;
};

Weights::Weights() : impl_(std::make_unique<Impl>()) {}
Weights::~Weights() = default;

std::unique_ptr<Weights> Weights::load(const GgufFile& file,
                                       const ModelConfig& config,
                                       Backend& backend,
                                       const WeightOptions& options,
                                       const std::function<void(double)>& on_progress) {
    return load(file, config, LayerMap(backend, config.n_layers), options, on_progress);
}

std::unique_ptr<Weights> Weights::load(const GgufFile& file,
                                       const ModelConfig& config,
                                       const LayerMap& layers,
                                       const WeightOptions& options,
                                       const std::function<void(double)>& on_progress) {
    const Architecture* architecture = find_architecture(config.architecture);
    KNAP_ASSERT(architecture != nullptr, "a configuration is read for a known architecture");
    std::unique_ptr<Weights> weights(new Weights);
    auto& [tensors, statistics, placed] = *weights->impl_;

    std::vector<TensorBinding> bindings =
        bind_tensors(file, config, architecture->tensors, tensors);
    std::erase_if(bindings, [&](const TensorBinding& binding) {
        return binding.info->name == unused_factors(config, options.n_ctx);
    });
    const auto why_not = why_not_strips(config, bindings, tensors, strip_devices(layers), options);
    tensors.has_strips = !why_not;
    statistics.cuda_kernels = why_not.value_or("used");
    if (!tensors.has_strips) {
        check_devices_take(file, layers, bindings, tensors);
    }
    const std::vector<Placement> placements = plan_placements(bindings, tensors, layers, options);
    placed.place(file, placements, on_progress);
    spread_divisors(tensors, layers);
    statistics.has_tied_head = file.find("output.weight") == nullptr;
    if (tensors.output == nullptr) {
        tensors.output = tensors.token_embd;
    }
    count_stored(bindings, config, tensors, statistics);
    count_layouts(placements, statistics);
    return weights;
}

const ModelTensors& Weights::tensors() const {
    return impl_->tensors;
}

const WeightStatistics& Weights::statistics() const {
    return impl_->statistics;
}

}  // namespace knap

#include "model/placement/strip_coverage.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include "ggml-backend.h"

#include "base/text.h"
#include "device/backend.h"
#include "device/layer_map.h"
#include "kernels/cuda/pass.h"
#include "kernels/cuda/strips.h"
#include "model/cache_type.h"
#include "model/gguf/gguf_file.h"
#include "model/weight_type.h"

namespace knap {
namespace {

using Reason = std::optional<std::string>;

constexpr int kLeastCapability = 80;
#define KNAP_ITEM(HEAD_DIM) HEAD_DIM,
constexpr int kHeadSizes[] = {KNAP_HEAD_SIZES(KNAP_ITEM)};
#undef KNAP_ITEM
constexpr int kMaxHeadsPerKv = 16;  // rows of a tile of the tensor cores

Reason check_devices(const StripDevices& devices) {
    const auto is_nvidia = [](std::string_view name) { return name.starts_with("CUDA"); };
    if (std::ranges::none_of(devices.names, is_nvidia)) {
        return "no NVIDIA GPU";
    }
    if (devices.names.size() > 1) {
        return "layers on several devices";
    }
    if (!devices.has_kernels) {
        return "a build without them";
    }
    if (devices.first.index < 0) {
        return "the CUDA runtime finds no GPU";
    }
    const int capability = devices.first.capability;
    if (capability < kLeastCapability) {
        return concat("compute capability ", capability / 10, ".", capability % 10);
    }
    return {};
}

Reason check_options(const WeightOptions& options) {
    if (options.kernels == Kernels::ggml) {
        return "ggml's kernels were asked for";
    }
    if (options.flash_attention == FlashAttention::on) {
        return "ggml's flash attention was asked for";
    }
    if (options.has_adapter) {
        return "an adapter is loaded";
    }
    for (const CacheType type : {options.cache_type_k, options.cache_type_v}) {
        if (type != CacheType::f16 && type != CacheType::q8_0) {
            return concat("cache type ", to_string(type));
        }
    }
    return {};
}

Reason check_tensor(const TensorInfo& info, bool is_matrix) {
    if (is_matrix ? strip_unit(info.type).n_bytes == 0 : info.type != GGML_TYPE_F32) {
        return concat("tensor ", info.name, ": type ", type_label(info.type), " has no kernel");
    }
    if (is_matrix && !can_pack_strips(info.type, info.ne[0], info.ne[1])) {
        return concat("tensor ", info.name, ": a size of {", info.ne[0], ", ", info.ne[1],
                      "} has no kernel");
    }
    return {};
}

// Which matrices of a layer are multiplied by the same rows; 0: none other.
int input_of(const TensorBinding& binding, const LayerWeights& layer) {
    const auto is_one_of = [&](std::initializer_list<ggml_tensor* const*> places) {
        return std::ranges::find(places, binding.place) != places.end();
    };
    return is_one_of({&layer.wq, &layer.wk, &layer.wv})  ? 1
           : is_one_of({&layer.ffn_gate, &layer.ffn_up}) ? 2
                                                         : 0;
}

// Rows are prepared once for all matrices that they are multiplied by.
Reason check_inputs(std::span<const TensorBinding> bindings, const ModelTensors& tensors) {
    std::map<std::pair<int, int>, const TensorInfo*> firsts;  // by layer and input
    for (const TensorBinding& binding : bindings) {
        if (binding.layer < 0) {
            continue;
        }
        const int input =
            input_of(binding, tensors.layers[static_cast<std::size_t>(binding.layer)]);
        if (input == 0) {
            continue;
        }
        const TensorInfo& first =
            *firsts.try_emplace({binding.layer, input}, binding.info).first->second;
        // Gate and up are multiplied together.
        const bool are_alike = input == 2
                                   ? first.type == binding.info->type
                                   : takes_halves(first.type) == takes_halves(binding.info->type);
        if (!are_alike) {
            return concat("tensors ", first.name, " and ", binding.info->name, ": types ",
                          type_label(first.type), " and ", type_label(binding.info->type),
                          " for the same rows");
        }
    }
    return {};
}

bool is_post_norm(const TensorBinding& binding, const ModelTensors& tensors) {
    if (binding.layer < 0) {
        return false;
    }
    const LayerWeights& layer = tensors.layers[static_cast<std::size_t>(binding.layer)];
    return binding.place == &layer.attn_post_norm || binding.place == &layer.ffn_post_norm;
}

// What these kernels do not compute, beyond dense layers that are all alike.
Reason check_layers(const ModelConfig& config) {
    if (config.rope.n_rot != config.head_dim) {
        return concat("heads of ", config.head_dim, " channels of which ", config.rope.n_rot,
                      " rotate");
    }
    if (!config.rope.divisors.empty()) {
        return "rotation in sections";
    }
    for (const LayerSpec& layer : config.layers) {
        if (layer.experts) {
            return "layers with experts";
        }
        if (layer.rotation != Rotation::global) {
            return "layers that rotate differently";
        }
        if (layer.window > 0) {
            return "layers that attend to a window";
        }
    }
    if (config.soft_cap != 0 || config.final_soft_cap != 0) {
        return "soft caps";
    }
    if (config.head_norm != HeadNorm::per_head) {
        return "norms of whole rows or after the rotation";
    }
    if (config.activation != Activation::silu) {
        return "another activation than silu";
    }
    if (config.temperature.scale != 0) {
        return "attention that sharpens with the position";
    }
    if (config.embedding_scale != 1 || config.residual_scale != 1 || config.logit_scale != 1) {
        return "scaled embeddings, residuals or logits";
    }
    return {};
}

Reason check_model(const ModelConfig& config,
                   std::span<const TensorBinding> bindings,
                   const ModelTensors& tensors) {
    if (std::ranges::find(kHeadSizes, config.head_dim) == std::end(kHeadSizes)) {
        return concat("head size ", config.head_dim);
    }
    if (config.heads_per_kv() > kMaxHeadsPerKv) {
        return concat(config.heads_per_kv(), " query heads per KV head");
    }
    if (const Reason reason = check_layers(config)) {
        return reason;
    }
    for (const TensorBinding& binding : bindings) {
        if (const Reason reason = check_tensor(*binding.info, binding.is_matrix)) {
            return reason;
        }
        if (is_post_norm(binding, tensors)) {
            return concat("tensor ", binding.info->name, ": a norm after its module");
        }
    }
    return check_inputs(bindings, tensors);
}

// The embedding is the head too where there is none.
Reason check_memory(const ModelConfig& config,
                    std::span<const TensorBinding> bindings,
                    const StripDevices& devices) {
    std::vector<ggml_type> types;
    for (const TensorBinding& binding : bindings) {
        if (binding.is_matrix) {
            types.push_back(binding.info->type);
        }
    }
    if (max_step_rows(step_needs(config, types), devices.first.shared_bytes) == 0) {
        return concat("heads of ", config.head_dim, " channels and these types in ",
                      devices.first.shared_bytes / 1024, " KiB of shared memory");
    }
    return {};
}

}  // namespace

StripDevices strip_devices(const LayerMap& layers) {
    StripDevices devices{.has_kernels = has_cuda_kernels()};
    for (const LayerShare& share : layers.shares()) {
        devices.names.emplace_back(ggml_backend_dev_name(share.backend->device()));
    }
    devices.first = find_cuda_device(devices.names.front());
    return devices;
}

StepNeeds step_needs(const ModelConfig& config, std::span<const ggml_type> types) {
    StepNeeds needs{.head_dim = config.head_dim,
                    .heads_per_kv = config.heads_per_kv(),
                    .most_inputs = std::max({config.n_embd, config.n_embd_q(), config.n_ff}),
                    .n_layers = config.n_layers};
    for (const ggml_type type : types) {
        needs.slot_bytes = std::max(needs.slot_bytes, copied_bytes(type));
        needs.has_halves = needs.has_halves || takes_halves(type);
    }
    return needs;
}

std::optional<std::string> why_not_strips(const ModelConfig& config,
                                          std::span<const TensorBinding> bindings,
                                          const ModelTensors& tensors,
                                          const StripDevices& devices,
                                          const WeightOptions& options) {
    Reason reason = check_devices(devices);
    reason = reason ? reason : check_options(options);
    reason = reason ? reason : check_model(config, bindings, tensors);
    return reason ? reason : check_memory(config, bindings, devices);
}

}  // namespace knap

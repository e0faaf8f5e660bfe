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
#include "kernels/cuda/strips.h"
#include "model/cache_type.h"
#include "model/gguf/gguf_file.h"
#include "model/weight_type.h"

namespace knap {
namespace {

using Reason = std::optional<std::string>;

constexpr int kLeastCapability = 80;
// What a pass of 16 rows needs of a block's shared memory for every shape: that of data-centre GPUs
// from compute capability 9.0 on.
constexpr std::size_t kLeastSharedBytes = 224 * 1024;

constexpr int kHeadSizes[] = {64, 128};
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
    if (devices.first.shared_bytes < kLeastSharedBytes) {
        return concat(devices.first.shared_bytes / 1024, " KiB of shared memory, of ",
                      kLeastSharedBytes / 1024);
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
        if (type != CacheType::f16) {
            return concat("cache type ", to_string(type));
        }
    }
    return {};
}

Reason check_tensor(const TensorInfo& info, bool is_matrix) {
    if (is_matrix ? strip_unit(info.type).n_bytes == 0 : info.type != GGML_TYPE_F32) {
        return concat("tensor ", info.name, ": type ", type_label(info.type), " has no kernel");
    }
    if (is_matrix && !can_pack_strips(info.type, info.ne[0])) {
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

// What these kernels do not compute.
Reason check_layers(const ModelConfig& config) {
    const auto has_experts = [](const LayerSpec& layer) { return layer.experts.has_value(); };
    return std::ranges::any_of(config.layers, has_experts) ? Reason("layers with experts")
                                                           : std::nullopt;
}

// With 16-bit weights ggml's kernels read long prompts faster: docs/results/h200.md.
Reason check_speed(std::span<const TensorBinding> bindings, const WeightOptions& options) {
    const auto is_slower = [](const TensorBinding& binding) {
        return binding.is_matrix && binding.layer >= 0 && takes_halves(binding.info->type);
    };
    const auto slower = std::ranges::find_if(bindings, is_slower);
    if (options.kernels == Kernels::own || slower == bindings.end()) {
        return {};
    }
    return concat("tensor ", slower->info->name, ": with type ", type_label(slower->info->type),
                  " ggml reads prompts faster; `.kernels` own asks for them");
}

Reason check_model(const ModelConfig& config,
                   std::span<const TensorBinding> bindings,
                   const ModelTensors& tensors) {
    if (const Reason reason = check_layers(config)) {
        return reason;
    }
    if (std::ranges::find(kHeadSizes, config.head_dim) == std::end(kHeadSizes)) {
        return concat("head size ", config.head_dim);
    }
    if (config.heads_per_kv() > kMaxHeadsPerKv) {
        return concat(config.heads_per_kv(), " query heads per KV head");
    }
    for (const TensorBinding& binding : bindings) {
        if (const Reason reason = check_tensor(*binding.info, binding.is_matrix)) {
            return reason;
        }
    }
    return check_inputs(bindings, tensors);
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

std::optional<std::string> why_not_strips(const ModelConfig& config,
                                          std::span<const TensorBinding> bindings,
                                          const ModelTensors& tensors,
                                          const StripDevices& devices,
                                          const WeightOptions& options) {
    Reason reason = check_devices(devices);
    reason = reason ? reason : check_options(options);
    reason = reason ? reason : check_model(config, bindings, tensors);
    return reason ? reason : check_speed(bindings, options);
}

}  // namespace knap

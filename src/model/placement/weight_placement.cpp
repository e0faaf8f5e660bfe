#include "model/placement/weight_placement.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>

#include "ggml-backend.h"

#include "base/error.h"
#include "base/mapped_file.h"
#include "device/backend.h"
#include "device/layer_map.h"
#include "kernels/cuda/device_memory.h"
#include "kernels/cuda/packing.h"
#include "kernels/matmul/matmul.h"
#include "model/gguf/gguf_file.h"
#include "model/parallel_jobs.h"
#include "model/placement/repack.h"
#include "model/weight_type.h"

namespace knap {
namespace {

// Files written by other programs may align their tensors less than the device needs.
bool can_stay_mapped(const Backend& backend, const TensorInfo& info) {
    return HostMemory::is_usable_by(backend) &&
           reinterpret_cast<std::uintptr_t>(info.data) %
                   ggml_backend_buft_get_alignment(backend.buffer_type()) ==
               0;
}

// The device of a tensor: that of its layer, or of the embedding or the head.
const LayerShare& share_of(const TensorBinding& binding,
                           const ModelTensors& tensors,
                           const LayerMap& layers) {
    if (binding.layer >= 0) {
        return layers.of_layer(binding.layer);
    }
    return binding.place == &tensors.token_embd ? layers.first() : layers.last();
}

// Chooses the layouts of tensors on one device.
class LayoutChooser {
  public:
    LayoutChooser(const Backend& backend, const WeightOptions& options, bool has_strips)
        : backend_(backend),
          has_strips_(has_strips),
          packs_(options.kernels != Kernels::ggml && options.repack != Repack::off &&
                 has_fast_matmul() && HostMemory::is_usable_by(backend)),
          repacker_(backend, options.repack) {}

    // The layout for products with a matrix. Returns nullopt when it stays as stored.
    std::optional<Placement> choose(const TensorInfo* matrix, ggml_tensor** place) const {
        if (has_strips_) {
            return Placement{matrix, place, Placement::Kind::strips, &backend_,
                             backend_.buffer_type()};
        }
        if (packs_ && can_pack(matrix->type, matrix->ne[0])) {
            return Placement{matrix, place, Placement::Kind::packed, &backend_};
        }
        if (ggml_backend_buffer_type_t layout = repacker_.choose(*matrix)) {
            return Placement{matrix, place, Placement::Kind::repacked, &backend_, layout};
        }
        return {};
    }
    // The layout of the matrices of experts, all of which our kernels have a layout for.
    std::optional<Placement> choose_for_experts(const TensorInfo* matrices,
                                                ggml_tensor** place) const {
        if (!packs_) {
            return {};
        }
        return Placement{matrices, place, Placement::Kind::packed, &backend_};
    }

    Placement as_stored(const TensorInfo* tensor, ggml_tensor** place) const {
        if (can_stay_mapped(backend_, *tensor)) {
            return {tensor, place, Placement::Kind::mapped, &backend_};
        }
        return {tensor, place, Placement::Kind::copied, &backend_, backend_.buffer_type()};
    }

  private:
    const Backend& backend_;
    bool has_strips_;
    bool packs_;
    RepackChooser repacker_;
};

// Creates the tensors without memory.
ggml_context_ptr make_tensors(const std::vector<Placement>& placements) {
    ggml_context_ptr context(
        ggml_init({placements.size() * ggml_tensor_overhead(), nullptr, true}));
    for (const Placement& placement : placements) {
        const TensorInfo& info = *placement.info;
        *placement.place = ggml_new_tensor(context.get(), info.type, GGML_MAX_DIMS, info.ne);
        ggml_set_name(*placement.place, info.name.c_str());
    }
    return context;
}

std::size_t all_packed_bytes(const TensorInfo& info) {
    return packed_bytes(info.type, static_cast<int>(info.ne[0]), static_cast<int>(info.ne[1])) *
           static_cast<std::size_t>(info.ne[2]);
}

void pack_group(const PackedWeight& weight, int plane, int group) {
    const PackedMatrix matrix = weight.plane(plane);
    const std::size_t row_bytes = ggml_row_size(matrix.type, matrix.n_in);
    const std::byte* stored = weight.stored + row_bytes * static_cast<std::size_t>(matrix.n_out) *
                                                  static_cast<std::size_t>(plane);
    const int first = group * kGroupRows;
    for (int row = first; row < std::min(first + kGroupRows, matrix.n_out); ++row) {
        pack_row(matrix, row, stored + static_cast<std::size_t>(row) * row_bytes);
    }
}

void pack_matrix(const PackedWeight& weight) {
    const int n_groups = weight.matrix.n_groups();
    run_parallel(static_cast<std::size_t>(n_groups * weight.n_planes),
                 [&](std::size_t i) {
                     pack_group(weight, static_cast<int>(i) / n_groups,
                                static_cast<int>(i) % n_groups);
                 },
                 {});
}

// Experts are packed if all matrices of their layer can be, because one phase reads them all, and
// if gate and up take the same rows.
bool packs_experts(const std::vector<TensorBinding>& bindings,
                   const LayerWeights& weights,
                   int layer) {
    std::optional<InputForm> form;  // of gate and up
    for (const TensorBinding& binding : bindings) {
        if (binding.layer != layer || !binding.is_of_experts || !binding.is_matrix) {
            continue;
        }
        if (!can_pack(binding.info->type, binding.info->ne[0])) {
            return false;
        }
        if (binding.place == &weights.expert_down) {
            continue;
        }
        const InputForm own = input_form(binding.info->type);
        if (own != form.value_or(own)) {
            return false;
        }
        form = own;
    }
    return true;
}

// Returns null when there is not enough memory.
ggml_backend_buffer_t allocate(ggml_context* tensors,
                               const Backend& backend,
                               ggml_backend_buffer_type_t type) {
    const WorkerWait wait = backend.waiting();
    return ggml_backend_alloc_ctx_tensors_from_buft(tensors, type);
}

// Waits per tensor: copying all of them to a worker may take longer than its silence limit.
void copy(const Placement& placement, const Backend& backend) {
    const WorkerWait wait = backend.waiting();
    ggml_backend_tensor_set(*placement.place, placement.info->data, 0, placement.info->n_bytes);
}

void put_into_strips(const Placement& placement, const Backend& backend) {
    const TensorInfo& info = *placement.info;
    use_device(find_cuda_device(ggml_backend_dev_name(backend.device())));
    pack_strips((*placement.place)->data, info.type, info.ne[0], info.ne[1]);
}

}  // namespace

void check_devices_take(const GgufFile& file,
                        const LayerMap& layers,
                        const std::vector<TensorBinding>& bindings,
                        const ModelTensors& tensors) {
    for (const TensorBinding& binding : bindings) {
        const TensorInfo& info = *binding.info;
        const Backend& backend = *share_of(binding, tensors, layers).backend;
        const bool is_embedding = binding.place == &tensors.token_embd;
        if (binding.is_matrix &&
            (!can_multiply(backend, info) || (is_embedding && !can_look_up_rows(backend, info)))) {
            fail(file.path().string(), ": tensor ", info.name, ": expected a type that the device ",
                 ggml_backend_dev_name(backend.device()), " computes with, found ",
                 type_label(info.type));
        }
    }
}

std::vector<Placement> plan_placements(const std::vector<TensorBinding>& bindings,
                                       ModelTensors& tensors,
                                       const LayerMap& layers,
                                       const WeightOptions& options) {
    std::map<const Backend*, LayoutChooser> layouts;
    for (const LayerShare& share : layers.shares()) {
        layouts.try_emplace(share.backend, *share.backend, options, tensors.has_strips);
    }
    std::vector<Placement> placements;
    const TensorInfo* embedding = nullptr;
    bool has_own_head = false;
    for (const TensorBinding& binding : bindings) {
        if (binding.place == &tensors.rope_freqs) {
            for (const LayerShare& share : layers.shares()) {
                auto& first = tensors.layers[static_cast<std::size_t>(share.first_layer)];
                placements.push_back(
                    layouts.at(share.backend).as_stored(binding.info, &first.rope_freqs));
            }
            continue;
        }
        const bool is_embedding = binding.place == &tensors.token_embd;
        embedding = is_embedding ? binding.info : embedding;
        has_own_head |= binding.place == &tensors.output;
        const LayoutChooser& chooser = layouts.at(share_of(binding, tensors, layers).backend);
        std::optional<Placement> placement;
        // The embedding serves row lookups. Our CUDA kernels look rows up in strips.
        if (binding.is_matrix && binding.is_of_experts) {
            const LayerWeights& weights = tensors.layers[static_cast<std::size_t>(binding.layer)];
            if (packs_experts(bindings, weights, binding.layer)) {
                placement = chooser.choose_for_experts(binding.info, binding.place);
            }
        } else if (binding.is_matrix && (!is_embedding || tensors.has_strips)) {
            placement = chooser.choose(binding.info, binding.place);
        }
        placements.push_back(placement ? *placement
                                       : chooser.as_stored(binding.info, binding.place));
    }
    if (embedding != nullptr && !has_own_head && !tensors.has_strips) {
        const LayoutChooser& chooser = layouts.at(layers.last().backend);
        if (const auto head = chooser.choose(embedding, &tensors.output)) {
            placements.push_back(*head);
        } else if (layers.shares().size() > 1) {
            placements.push_back(chooser.as_stored(embedding, &tensors.output));
        }
    }
    return placements;
}

void spread_divisors(ModelTensors& tensors, const LayerMap& layers) {
    for (const LayerShare& share : layers.shares()) {
        const auto of_share = std::span(tensors.layers)
                                  .subspan(static_cast<std::size_t>(share.first_layer),
                                           static_cast<std::size_t>(share.n_layers()));
        for (LayerWeights& layer : of_share) {
            layer.rope_freqs = of_share.front().rope_freqs;
        }
    }
    tensors.rope_freqs = tensors.layers.front().rope_freqs;
}

void PlacedTensors::place(const GgufFile& file,
                          const std::vector<Placement>& placements,
                          const std::function<void(double)>& on_progress) {
    using Where = std::tuple<Placement::Kind, const Backend*, ggml_backend_buffer_type_t>;
    std::map<Where, std::vector<Placement>> groups;
    std::size_t to_copy = 0;
    for (const Placement& placement : placements) {
        groups[{placement.kind, placement.backend, placement.copy_to}].push_back(placement);
        to_copy += placement.kind != Placement::Kind::mapped ? placement.info->n_bytes : 0;
    }
    std::size_t copied = 0;
    const auto on_copied = [&](std::size_t n_bytes) {
        copied += n_bytes;
        if (on_progress) {
            on_progress(static_cast<double>(copied) / static_cast<double>(to_copy));
        }
    };
    for (const auto& [where, group] : groups) {
        const auto& [kind, backend, copy_to] = where;
        switch (kind) {
            case Placement::Kind::mapped:
                place_mapped(file, *backend, group);
                break;
            case Placement::Kind::copied:
            case Placement::Kind::repacked:
            case Placement::Kind::strips:
                place_copied(file, *backend, copy_to, group, on_copied);
                break;
            case Placement::Kind::packed:
                place_packed(*backend, group, on_copied);
                break;
        }
    }
    if (to_copy == 0 && on_progress) {
        on_progress(1.0);
    }
}

void PlacedTensors::place_mapped(const GgufFile& file,
                                 const Backend& backend,
                                 const std::vector<Placement>& placements) {
    contexts_.push_back(make_tensors(placements));
    std::map<std::size_t, ggml_backend_buffer_t> buffer_of_part;
    for (const Placement& placement : placements) {
        const TensorInfo& info = *placement.info;
        ggml_backend_buffer_t& buffer = buffer_of_part[info.part];
        if (buffer == nullptr) {
            const std::span<const std::byte> bytes = file.mappings()[info.part];
            // ggml has no const buffers; nothing writes to a buffer of weights.
            buffer = ggml_backend_dev_buffer_from_host_ptr(
                backend.device(), const_cast<std::byte*>(bytes.data()), bytes.size(), bytes.size());
            if (buffer == nullptr) {
                fail(file.path().string(), ": the device cannot use the mapped file");
            }
            keep(buffer);
        }
        ggml_backend_tensor_alloc(buffer, *placement.place, const_cast<std::byte*>(info.data));
    }
}

void PlacedTensors::place_copied(const GgufFile& file,
                                 const Backend& backend,
                                 ggml_backend_buffer_type_t type,
                                 const std::vector<Placement>& placements,
                                 const std::function<void(std::size_t)>& on_copied) {
    contexts_.push_back(make_tensors(placements));
    ggml_backend_buffer_t buffer = allocate(contexts_.back().get(), backend, type);
    if (buffer == nullptr) {
        fail(file.path().string(), ": not enough memory to copy ", placements.size(),
             " tensors into a buffer of type ", ggml_backend_buft_name(type));
    }
    keep(buffer);
    for (const Placement& placement : placements) {
        const TensorInfo& info = *placement.info;
        copy(placement, backend);
        if (placement.kind == Placement::Kind::strips) {
            put_into_strips(placement, backend);
        }
        release_pages({info.data, info.n_bytes});
        on_copied(info.n_bytes);
    }
}

// Releases the file's pages after each matrix, so there are never two copies of a model in memory.
void PlacedTensors::place_packed(const Backend& backend,
                                 const std::vector<Placement>& placements,
                                 const std::function<void(std::size_t)>& on_copied) {
    contexts_.push_back(make_tensors(placements));
    std::size_t n_bytes = 0;
    for (const Placement& placement : placements) {
        n_bytes += all_packed_bytes(*placement.info);
    }
    const HostMemory& memory =
        packed_memory_.emplace_back(backend, n_bytes, HostMemory::Pages::huge,
                                    "the weights (`.repack` off leaves them in the file)");
    ggml_backend_buffer_set_usage(memory.buffer(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    std::byte* data = memory.data();
    for (const Placement& placement : placements) {
        const TensorInfo& info = *placement.info;
        const PackedWeight& weight =
            packed_.emplace_back(PackedWeight{.matrix = {.type = info.type,
                                                         .n_in = static_cast<int>(info.ne[0]),
                                                         .n_out = static_cast<int>(info.ne[1]),
                                                         .data = data},
                                              .stored = info.data,
                                              .n_planes = static_cast<int>(info.ne[2])});
        ggml_backend_tensor_alloc(memory.buffer(), *placement.place, data);
        set_packed_weight(*placement.place, weight);
        data += all_packed_bytes(info);
        pack_matrix(weight);
        release_pages({info.data, info.n_bytes});
        on_copied(info.n_bytes);
    }
}

void PlacedTensors::keep(ggml_backend_buffer_t buffer) {
    buffers_.emplace_back(buffer);
    ggml_backend_buffer_set_usage(buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
}

}  // namespace knap

#include "model/weight_placement.h"

#include <algorithm>
#include <cstdint>
#include <map>

#include "ggml-backend.h"

#include "base/error.h"
#include "base/mapped_file.h"
#include "device/backend.h"
#include "kernels/matmul.h"
#include "model/gguf_file.h"
#include "model/parallel_jobs.h"
#include "model/repack.h"
#include "model/weight_type.h"

namespace knap {
namespace {

// Foreign files may align their tensors less than the device needs.
bool can_stay_mapped(const Backend& backend, const TensorInfo& info) {
    return HostMemory::is_usable_by(backend) &&
           reinterpret_cast<std::uintptr_t>(info.data) %
                   ggml_backend_buft_get_alignment(backend.buffer_type()) ==
               0;
}

// Which layout products with a matrix are computed in; none: as it is stored.
class LayoutChooser {
  public:
    LayoutChooser(const Backend& backend, const WeightOptions& options)
        : packs_(options.kernels == Kernels::automatic && options.repack != Repack::off &&
                 has_fast_matmul() && HostMemory::is_usable_by(backend)),
          repacker_(backend, options.repack) {}

    std::optional<Placement> choose(const TensorInfo* matrix, ggml_tensor** place) const {
        if (packs_ && can_pack(matrix->type, matrix->ne[0])) {
            return Placement{matrix, place, Placement::Kind::packed};
        }
        if (ggml_backend_buffer_type_t layout = repacker_.choose(*matrix)) {
            return Placement{matrix, place, Placement::Kind::repacked, layout};
        }
        return {};
    }

  private:
    bool packs_;
    RepackChooser repacker_;
};

// Makes the tensors, without memory yet.
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

void pack_matrix(const PackedWeight& weight) {
    const PackedMatrix& matrix = weight.matrix;
    const std::size_t row_bytes = ggml_row_size(matrix.type, matrix.n_in);
    run_parallel(
        static_cast<std::size_t>(matrix.n_groups()),
        [&](std::size_t group) {
            const int first = static_cast<int>(group) * kGroupRows;
            for (int row = first; row < std::min(first + kGroupRows, matrix.n_out); ++row) {
                pack_row(matrix, row, weight.stored + static_cast<std::size_t>(row) * row_bytes);
            }
        },
        {});
}

}  // namespace

void check_device_takes(const GgufFile& file,
                        const Backend& backend,
                        const std::vector<TensorBinding>& bindings,
                        const ModelTensors& tensors) {
    for (const TensorBinding& binding : bindings) {
        const TensorInfo& info = *binding.info;
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
                                       const Backend& backend,
                                       const WeightOptions& options) {
    const LayoutChooser layouts(backend, options);
    std::vector<Placement> placements;
    const TensorInfo* embedding = nullptr;
    bool has_own_head = false;
    for (const TensorBinding& binding : bindings) {
        const bool is_embedding = binding.place == &tensors.token_embd;
        embedding = is_embedding ? binding.info : embedding;
        has_own_head |= binding.place == &tensors.output;
        std::optional<Placement> placement;
        if (binding.is_matrix && !is_embedding) {  // rows are looked up in the embedding
            placement = layouts.choose(binding.info, binding.place);
        }
        if (!placement) {
            const bool stays = can_stay_mapped(backend, *binding.info);
            placement = {binding.info, binding.place,
                         stays ? Placement::Kind::mapped : Placement::Kind::copied,
                         stays ? nullptr : backend.buffer_type()};
        }
        placements.push_back(*placement);
    }
    if (embedding != nullptr && !has_own_head) {
        if (const auto head = layouts.choose(embedding, &tensors.output)) {
            placements.push_back(*head);
        }
    }
    return placements;
}

void PlacedTensors::place(const GgufFile& file,
                          const Backend& backend,
                          const std::vector<Placement>& placements,
                          const std::function<void(double)>& on_progress) {
    std::map<std::pair<Placement::Kind, ggml_backend_buffer_type_t>, std::vector<Placement>> groups;
    std::size_t to_copy = 0;
    for (const Placement& placement : placements) {
        groups[{placement.kind, placement.copy_to}].push_back(placement);
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
        switch (where.first) {
            case Placement::Kind::mapped:
                place_mapped(file, backend, group);
                break;
            case Placement::Kind::copied:
            case Placement::Kind::repacked:
                place_copied(file, where.second, group, on_copied);
                break;
            case Placement::Kind::packed:
                place_packed(backend, group, on_copied);
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
            // ggml has no const buffers; nothing writes to one of weights.
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
                                 ggml_backend_buffer_type_t type,
                                 const std::vector<Placement>& placements,
                                 const std::function<void(std::size_t)>& on_copied) {
    contexts_.push_back(make_tensors(placements));
    ggml_backend_buffer_t buffer =
        ggml_backend_alloc_ctx_tensors_from_buft(contexts_.back().get(), type);
    if (buffer == nullptr) {
        fail(file.path().string(), ": not enough memory to copy ", placements.size(),
             " tensors into a buffer of type ", ggml_backend_buft_name(type));
    }
    keep(buffer);
    for (const Placement& placement : placements) {
        const TensorInfo& info = *placement.info;
        ggml_backend_tensor_set(*placement.place, info.data, 0, info.n_bytes);
        release_pages({info.data, info.n_bytes});
        on_copied(info.n_bytes);
    }
}

// Memory is taken group by group and given back to the file's as it is copied, so there are never
// two copies of a model.
void PlacedTensors::place_packed(const Backend& backend,
                                 const std::vector<Placement>& placements,
                                 const std::function<void(std::size_t)>& on_copied) {
    contexts_.push_back(make_tensors(placements));
    std::size_t n_bytes = 0;
    for (const Placement& placement : placements) {
        const TensorInfo& info = *placement.info;
        n_bytes +=
            packed_bytes(info.type, static_cast<int>(info.ne[0]), static_cast<int>(info.ne[1]));
    }
    packed_memory_.emplace(backend, n_bytes, HostMemory::Pages::huge,
                           "the weights (--repack off leaves them in the file)");
    ggml_backend_buffer_set_usage(packed_memory_->buffer(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    std::byte* data = packed_memory_->data();
    for (const Placement& placement : placements) {
        const TensorInfo& info = *placement.info;
        const PackedWeight& weight =
            packed_.emplace_back(PackedWeight{.matrix = {.type = info.type,
                                                         .n_in = static_cast<int>(info.ne[0]),
                                                         .n_out = static_cast<int>(info.ne[1]),
                                                         .data = data},
                                              .stored = info.data});
        ggml_backend_tensor_alloc(packed_memory_->buffer(), *placement.place, data);
        set_packed_weight(*placement.place, weight);
        data += packed_bytes(weight.matrix.type, weight.matrix.n_in, weight.matrix.n_out);
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

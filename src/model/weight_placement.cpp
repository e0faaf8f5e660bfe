#include "model/weight_placement.h"

#include <cstdint>
#include <map>

#include "ggml-backend.h"

#include "base/error.h"
#include "base/mapped_file.h"
#include "device/backend.h"
#include "model/gguf_file.h"
#include "model/repack.h"

namespace knap {
namespace {

// What the device can use where it lies. Foreign files may align their tensors less than it needs.
class InPlaceRule {
  public:
    explicit InPlaceRule(const Backend& backend)
        : alignment_(ggml_backend_buft_get_alignment(backend.buffer_type())) {
        ggml_backend_dev_props properties;
        ggml_backend_dev_get_props(backend.device(), &properties);
        wraps_host_memory_ = properties.caps.buffer_from_host_ptr;
    }

    bool allows(const TensorInfo& info) const {
        return wraps_host_memory_ && reinterpret_cast<std::uintptr_t>(info.data) % alignment_ == 0;
    }

  private:
    std::size_t alignment_;
    bool wraps_host_memory_;
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

}  // namespace

std::vector<Placement> plan_placements(const std::vector<TensorBinding>& bindings,
                                       ModelTensors& tensors,
                                       const Backend& backend,
                                       Repack repack) {
    const RepackChooser repacker(backend, repack);
    const InPlaceRule in_place(backend);
    std::vector<Placement> placements;
    const TensorInfo* embedding = nullptr;
    bool has_own_head = false;
    for (const TensorBinding& binding : bindings) {
        const bool is_embedding = binding.place == &tensors.token_embd;
        embedding = is_embedding ? binding.info : embedding;
        has_own_head |= binding.place == &tensors.output;
        // Rows are looked up in the embedding, and no repacked layout can do that.
        const bool may_repack = binding.is_matrix && !is_embedding;
        ggml_backend_buffer_type_t layout = may_repack ? repacker.choose(*binding.info) : nullptr;
        if (layout != nullptr) {
            placements.push_back({binding.info, binding.place, layout, true});
        } else {
            const bool stays = in_place.allows(*binding.info);
            placements.push_back(
                {binding.info, binding.place, stays ? nullptr : backend.buffer_type(), false});
        }
    }
    KNAP_ASSERT(embedding != nullptr, "every architecture has an embedding");
    if (!has_own_head) {
        if (ggml_backend_buffer_type_t layout = repacker.choose(*embedding)) {
            placements.push_back({embedding, &tensors.output, layout, true});
        }
    }
    return placements;
}

void PlacedTensors::place(const GgufFile& file,
                          const Backend& backend,
                          const std::vector<Placement>& placements,
                          const std::function<void(double)>& on_progress) {
    std::map<ggml_backend_buffer_type_t, std::vector<Placement>> groups;
    std::size_t to_copy = 0;
    for (const Placement& placement : placements) {
        groups[placement.copy_to].push_back(placement);
        to_copy += placement.copy_to != nullptr ? placement.info->n_bytes : 0;
    }
    std::size_t copied = 0;
    const auto on_copied = [&](std::size_t n_bytes) {
        copied += n_bytes;
        if (on_progress) {
            on_progress(static_cast<double>(copied) / static_cast<double>(to_copy));
        }
    };
    for (const auto& [type, group] : groups) {
        if (type == nullptr) {
            place_mapped(file, backend, group);
        } else {
            place_copied(file, type, group, on_copied);
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

void PlacedTensors::keep(ggml_backend_buffer_t buffer) {
    buffers_.emplace_back(buffer);
    ggml_backend_buffer_set_usage(buffer, GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
}

}  // namespace knap

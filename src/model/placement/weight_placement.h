// Gives tensors memory on the device that computes with them: in the mapped file if the device can
// use it there, otherwise in a buffer of the device, or in a layout of our kernels if they take the
// matrix.
#pragma once

#include <deque>
#include <functional>
#include <vector>

#include "ggml-cpp.h"

#include "knap/types.h"

#include "device/host_memory.h"
#include "model/packed_weight.h"
#include "model/tensor_table.h"

namespace knap {

class Backend;
class GgufFile;
class LayerMap;

// Where a tensor goes.
struct Placement {
    enum class Kind {
        mapped,    // stays in the file
        copied,    // copied into memory of type `copy_to`
        repacked,  // the same, in one of ggml's layouts
        packed,    // copied into the layout of our kernels
        strips,    // copied like `copied`, then put into strips on the device
    };
    const TensorInfo* info;
    ggml_tensor** place;
    Kind kind;
    const Backend* backend;
    ggml_backend_buffer_type_t copy_to = nullptr;
};

// Throws knap::Error when a tensor's device cannot multiply by a matrix of its type, or cannot look
// up rows in the embedding. `bindings` point into `tensors`.
void check_devices_take(const GgufFile& file,
                        const LayerMap& layers,
                        const std::vector<TensorBinding>& bindings,
                        const ModelTensors& tensors);

// `bindings` point into `tensors`, whose `has_strips` says whether all matrices go into strips.
// When the file has no head, the embedding is the head too, and gets a second placement if products
// need another layout or the head is on another device. Frequency divisors go to every device, into
// its first layer.
std::vector<Placement> plan_placements(const std::vector<TensorBinding>& bindings,
                                       ModelTensors& tensors,
                                       const LayerMap& layers,
                                       const WeightOptions& options);

// Copies the pointer to the frequency divisors from the first layer of each device to its other
// layers.
void spread_divisors(ModelTensors& tensors, const LayerMap& layers);

// Tensors and their memory.
class PlacedTensors {
  public:
    // Creates every tensor and sets its place. `file` must outlive this object, because mapped
    // tensors are in it. Throws knap::Error when there is not enough memory. `on_progress` receives
    // the fraction copied and may be empty.
    void place(const GgufFile& file,
               const std::vector<Placement>& placements,
               const std::function<void(double)>& on_progress);

  private:
    void place_mapped(const GgufFile& file,
                      const Backend& backend,
                      const std::vector<Placement>& placements);
    void place_copied(const GgufFile& file,
                      const Backend& backend,
                      ggml_backend_buffer_type_t type,
                      const std::vector<Placement>& placements,
                      const std::function<void(std::size_t)>& on_copied);
    void place_packed(const Backend& backend,
                      const std::vector<Placement>& placements,
                      const std::function<void(std::size_t)>& on_copied);
    void keep(ggml_backend_buffer_t buffer);

    std::vector<ggml_context_ptr> contexts_;        // the tensors
    std::vector<ggml_backend_buffer_ptr> buffers_;  // their memory
    std::deque<HostMemory> packed_memory_;          // one per device
    std::deque<PackedWeight> packed_;               // a deque keeps addresses stable
};

}  // namespace knap

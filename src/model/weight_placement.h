// Giving tensors memory on the device that computes with them: in the mapped file where it can use
// it there, in buffers of its own otherwise, and in the layout of our own kernels where they take
// them.
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
        mapped,    // it stays in the file
        copied,    // into memory of type `copy_to`
        repacked,  // the same, in a layout of ggml's
        packed,    // into the layout of our kernels
    };
    const TensorInfo* info;
    ggml_tensor** place;
    Kind kind;
    const Backend* backend;
    ggml_backend_buffer_type_t copy_to = nullptr;
};

// Throws knap::Error when a tensor's device has no products with a matrix of such a type, or cannot
// look rows up in the embedding. `bindings` point into `tensors`.
void check_devices_take(const GgufFile& file,
                        const LayerMap& layers,
                        const std::vector<TensorBinding>& bindings,
                        const ModelTensors& tensors);

// `bindings` point into `tensors`. An embedding without a head beside it is the head as well: where
// another layout takes that, or it is on another device, it gets a placement beside that of the
// embedding. Divisors of frequencies go to every device, into the first layer of each.
std::vector<Placement> plan_placements(const std::vector<TensorBinding>& bindings,
                                       ModelTensors& tensors,
                                       const LayerMap& layers,
                                       const WeightOptions& options);

// Lets all layers of a device have what its first one was given.
void spread_divisors(ModelTensors& tensors, const LayerMap& layers);

// Tensors and their memory.
class PlacedTensors {
  public:
    // Makes every tensor and points its place to it. `file` must outlive this: mapped tensors lie
    // in it. Throws knap::Error when there is not enough memory. `on_progress` gets the fraction
    // copied and may be empty.
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

    std::vector<ggml_context_ptr> contexts_;        // what the tensors are
    std::vector<ggml_backend_buffer_ptr> buffers_;  // where they lie
    std::deque<HostMemory> packed_memory_;          // of each device
    std::deque<PackedWeight> packed_;               // keep their addresses
};

}  // namespace knap

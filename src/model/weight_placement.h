// Giving tensors memory: in the mapped file where the device can use it there, in buffers of its
// own otherwise.
#pragma once

#include <functional>
#include <vector>

#include "ggml-cpp.h"

#include "knap/types.h"

#include "model/tensor_table.h"

namespace knap {

class Backend;
class GgufFile;

// Where a tensor goes: into memory of type `copy_to`, or, when that is null, it stays where it is
// mapped.
struct Placement {
    const TensorInfo* info;
    ggml_tensor** place;
    ggml_backend_buffer_type_t copy_to;
    bool is_repacked;  // `copy_to` keeps another layout than the file
};

// `bindings` point into `tensors` and include token_embd. A tied head that a repacked layout takes
// gets a placement beside that of the embedding.
std::vector<Placement> plan_placements(const std::vector<TensorBinding>& bindings,
                                       ModelTensors& tensors,
                                       const Backend& backend,
                                       Repack repack);

// Tensors and their memory.
class PlacedTensors {
  public:
    // Makes every tensor and points its place to it. `file` must outlive this: mapped tensors lie
    // in it. Throws knap::Error when there is not enough memory. `on_progress` gets the fraction
    // copied and may be empty.
    void place(const GgufFile& file,
               const Backend& backend,
               const std::vector<Placement>& placements,
               const std::function<void(double)>& on_progress);

  private:
    void place_mapped(const GgufFile& file,
                      const Backend& backend,
                      const std::vector<Placement>& placements);
    void place_copied(const GgufFile& file,
                      ggml_backend_buffer_type_t type,
                      const std::vector<Placement>& placements,
                      const std::function<void(std::size_t)>& on_copied);
    void keep(ggml_backend_buffer_t buffer);

    std::vector<ggml_context_ptr> contexts_;        // what the tensors are
    std::vector<ggml_backend_buffer_ptr> buffers_;  // where they lie
};

}  // namespace knap

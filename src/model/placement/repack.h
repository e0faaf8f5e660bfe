// Decides which matrices move into the layouts of ggml's faster kernels, and whether a device can
// use a matrix.
#pragma once

#include <vector>

#include "ggml-cpp.h"

#include "knap/types.h"

namespace knap {

class Backend;
struct TensorInfo;

class RepackChooser {
  public:
    RepackChooser(const Backend& backend, Repack mode);

    // The buffer type that stores this matrix and multiplies by it. Returns null when it stays as
    // it is.
    ggml_backend_buffer_type_t choose(const TensorInfo& matrix) const;

  private:
    struct Layout {
        ggml_backend_buffer_type_t type;
        ggml_backend_buffer_ptr empty;  // a buffer of the type and size 0, for queries
    };

    const Backend& backend_;
    Repack mode_;
    std::vector<Layout> layouts_;
};

// Whether the device can multiply by a matrix of this type and size, or by those of experts, and
// whether it can look up rows in it.
bool can_multiply(const Backend& backend, const TensorInfo& matrix);
bool can_look_up_rows(const Backend& backend, const TensorInfo& matrix);

}  // namespace knap

// Which matrices move into the layouts that ggml's faster kernels want, and whether the device can
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

    // The buffer type that takes this matrix and computes products with it; null when it stays as
    // it is.
    ggml_backend_buffer_type_t choose(const TensorInfo& matrix) const;

  private:
    struct Layout {
        ggml_backend_buffer_type_t type;
        ggml_backend_buffer_ptr empty;  // what ggml is asked with: a buffer of the type, of no size
    };

    const Backend& backend_;
    Repack mode_;
    std::vector<Layout> layouts_;
};

// Whether the device multiplies by a matrix of this type and size, and looks up rows in it.
bool can_multiply(const Backend& backend, const TensorInfo& matrix);
bool can_look_up_rows(const Backend& backend, const TensorInfo& matrix);

}  // namespace knap

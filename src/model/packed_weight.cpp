#include "model/packed_weight.h"

#include "ggml-backend.h"

namespace knap {

const PackedWeight* packed_weight(const ggml_tensor* tensor) {
    // In memory that is not the host's the field is ggml's own.
    return ggml_backend_buffer_is_host(tensor->buffer)
               ? static_cast<const PackedWeight*>(tensor->extra)
               : nullptr;
}

void set_packed_weight(ggml_tensor* tensor, const PackedWeight& weight) {
    tensor->extra = const_cast<PackedWeight*>(&weight);  // ggml has no const there
}

}  // namespace knap

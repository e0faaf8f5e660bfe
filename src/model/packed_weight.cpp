#include "model/packed_weight.h"

#include "ggml-backend.h"

namespace knap {

PackedMatrix PackedWeight::plane(int i) const {
    PackedMatrix of_expert = matrix;
    of_expert.data +=
        packed_bytes(matrix.type, matrix.n_in, matrix.n_out) * static_cast<std::size_t>(i);
    return of_expert;
}

const PackedWeight* packed_weight(const ggml_tensor* tensor) {
    // Outside host memory ggml uses the field itself.
    return ggml_backend_buffer_is_host(tensor->buffer)
               ? static_cast<const PackedWeight*>(tensor->extra)
               : nullptr;
}

void set_packed_weight(ggml_tensor* tensor, const PackedWeight& weight) {
    tensor->extra = const_cast<PackedWeight*>(&weight);  // the field is not const in ggml
}

}  // namespace knap

#include "model/placement/repack.h"

#include <string_view>

#include "ggml-backend.h"

#include "device/backend.h"
#include "model/gguf/gguf_file.h"
#include "model/row_invariance.h"

namespace knap {
namespace {

// Leaves out ggml's AMX layout, in which a row's result depends on the size of the batch.
constexpr std::string_view kRepacked = "CPU_REPACK";

bool is_invariant(ggml_type type) {
    return row_invariant_rows(type, WeightLayout::repacked) == kAnyRows;
}

// Holds the tensors of one query to the device, without memory for their data.
ggml_context_ptr question() {
    return ggml_context_ptr(ggml_init({4 * ggml_tensor_overhead(), nullptr, true}));
}

ggml_tensor* stand_in(ggml_context* context, const TensorInfo& matrix) {
    return ggml_new_tensor_2d(context, matrix.type, matrix.ne[0], matrix.ne[1]);
}

// A product with the matrices of experts.
bool can_multiply_by_id(const Backend& backend, const TensorInfo& matrices) {
    const ggml_context_ptr context = question();
    ggml_tensor* weight = ggml_new_tensor_3d(context.get(), matrices.type, matrices.ne[0],
                                             matrices.ne[1], matrices.ne[2]);
    ggml_tensor* input = ggml_new_tensor_3d(context.get(), GGML_TYPE_F32, matrices.ne[0], 1, 1);
    ggml_tensor* ids = ggml_new_tensor_2d(context.get(), GGML_TYPE_I32, 1, 1);
    return backend.supports(ggml_mul_mat_id(context.get(), weight, input, ids));
}

bool can_multiply_in(const Backend& backend,
                     const TensorInfo& matrix,
                     ggml_backend_buffer_t buffer) {
    const ggml_context_ptr context = question();
    ggml_tensor* weight = stand_in(context.get(), matrix);
    weight->buffer = buffer;
    ggml_tensor* input = ggml_new_tensor_1d(context.get(), GGML_TYPE_F32, matrix.ne[0]);
    return backend.supports(ggml_mul_mat(context.get(), weight, input));
}

}  // namespace

RepackChooser::RepackChooser(const Backend& backend, Repack mode) : backend_(backend), mode_(mode) {
    if (mode == Repack::off) {
        return;
    }
    for (ggml_backend_buffer_type_t type : backend.extra_buffer_types()) {
        if (ggml_backend_buft_name(type) == kRepacked) {
            layouts_.push_back(
                {type, ggml_backend_buffer_ptr(ggml_backend_buft_alloc_buffer(type, 0))});
        }
    }
}

ggml_backend_buffer_type_t RepackChooser::choose(const TensorInfo& matrix) const {
    for (const Layout& layout : layouts_) {
        const bool is_wanted = mode_ == Repack::on || is_invariant(matrix.type);
        if (is_wanted && can_multiply_in(backend_, matrix, layout.empty.get())) {
            return layout.type;
        }
    }
    return nullptr;
}

bool can_multiply(const Backend& backend, const TensorInfo& matrix) {
    return matrix.ne[2] > 1 ? can_multiply_by_id(backend, matrix)
                            : can_multiply_in(backend, matrix, nullptr);
}

bool can_look_up_rows(const Backend& backend, const TensorInfo& matrix) {
    const ggml_context_ptr context = question();
    ggml_tensor* row = ggml_new_tensor_1d(context.get(), GGML_TYPE_I32, 1);
    return backend.supports(ggml_get_rows(context.get(), stand_in(context.get(), matrix), row));
}

}  // namespace knap

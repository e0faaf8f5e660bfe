#include <algorithm>

#include "kernels/cuda/cuda_check.h"
#include "kernels/cuda/prefill/prefill_halves.cuh"
#include "kernels/cuda/prefill/prefill_product.cuh"
#include "kernels/cuda/prefill/prefill_product.h"

namespace knap {

void start_product(const CudaDevice& device,
                   const ProductArguments& arguments,
                   ggml_type type,
                   cudaStream_t stream) {
    if (type == GGML_TYPE_F16 && has_halves_kernel<GGML_TYPE_F16>(device)) {
        start_halves<GGML_TYPE_F16>(arguments, stream);
        return;
    }
    if (type == GGML_TYPE_BF16 && has_halves_kernel<GGML_TYPE_BF16>(device)) {
        start_halves<GGML_TYPE_BF16>(arguments, stream);
        return;
    }
    switch (type) {
#define KNAP_CASE(TYPE)                                    \
    case TYPE:                                             \
        start_product_of<TYPE>(device, arguments, stream); \
        break;
        KNAP_STRIP_TYPES(KNAP_CASE)
#undef KNAP_CASE
        default:
            fail("GPU: no product for matrices of type ", ggml_type_name(type));
    }
}

}  // namespace knap

#include "kernels/matmul/matmul.h"

#include <vector>

#include "kernels/matmul/matmul_variants.h"
#include "kernels/usable_kernels.h"

namespace knap {
namespace {

#if defined(__x86_64__)
MatmulKernel amx_kernel() {
    MatmulKernel kernel = kAvx512Matmul;
    kernel.isa = Isa::amx;
    kernel.multiply = multiply_with_amx;
    return kernel;
}
const MatmulKernel* amx_matmul() {
    static const MatmulKernel kernel = amx_kernel();
    return &kernel;
}
#endif

}  // namespace

InputForm input_form(ggml_type type) {
    return ggml_is_quantized(type) ? InputForm::quantised : InputForm::floats;
}

std::size_t input_row_bytes(InputForm form, int n_in) {
    const auto n = static_cast<std::size_t>(n_in);
    return form == InputForm::floats ? n * sizeof(float) : n / kQuantBlock * sizeof(QuantisedBlock);
}

std::span<const MatmulKernel> matmul_kernels() {
    static const std::vector<MatmulKernel> kernels = usable_kernels<MatmulKernel>({
#if defined(__x86_64__)
        amx_matmul(), &kAvx512Matmul, &kAvxVnniMatmul, &kAvx2Matmul,
#elif defined(__aarch64__)
        &kNeonMatmul,
#endif
            &kPlainMatmul,
    });
    return kernels;
}

bool has_fast_matmul() {
    return matmul_kernels().size() > 1;
}

}  // namespace knap

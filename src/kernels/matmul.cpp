#include "kernels/matmul.h"

#include <vector>

#include "kernels/matmul_variants.h"

namespace knap {
namespace {

std::vector<MatmulKernel> find_kernels() {
    std::vector<MatmulKernel> kernels;
#if defined(__x86_64__)
    for (const MatmulKernel* kernel : {&kAvx512Matmul, &kAvxVnniMatmul, &kAvx2Matmul}) {
        if (may_use(kernel->isa)) {
            kernels.push_back(*kernel);
        }
    }
#endif
    kernels.push_back(kPlainMatmul);
    return kernels;
}

}  // namespace

InputForm input_form(ggml_type type) {
    return type == GGML_TYPE_F16 || type == GGML_TYPE_BF16 ? InputForm::floats
                                                           : InputForm::quantised;
}

std::size_t input_row_bytes(InputForm form, int n_in) {
    const auto n = static_cast<std::size_t>(n_in);
    return form == InputForm::floats ? n * sizeof(float) : n / kQuantBlock * sizeof(QuantisedBlock);
}

std::span<const MatmulKernel> matmul_kernels() {
    static const std::vector<MatmulKernel> kernels = find_kernels();
    return kernels;
}

bool has_fast_matmul() {
    return matmul_kernels().size() > 1;
}

}  // namespace knap

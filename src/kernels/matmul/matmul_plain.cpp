// The plain reference for products: one number at a time.
#include "kernels/matmul/matmul_body.h"
#include "kernels/matmul/matmul_variants.h"
#include "kernels/matmul/quantise_body.h"
#include "kernels/simd_plain.h"

namespace knap {

const MatmulKernel kPlainMatmul{
    .isa = Isa::plain,
    .multiply = MatmulBody<PlainSimd>::multiply,
    .quantise = QuantiseBody<PlainSimd>::quantise,
    .norm_and_quantise = QuantiseBody<PlainSimd>::norm_and_quantise,
    .gate_and_quantise = QuantiseBody<PlainSimd>::gate_and_quantise,
    .gate = QuantiseBody<PlainSimd>::gate,
};

}  // namespace knap

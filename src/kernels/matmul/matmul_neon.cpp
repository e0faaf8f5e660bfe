// Four lanes: NEON with dot products. Called only on machines that have them.
#include "kernels/matmul/matmul_body.h"
#include "kernels/matmul/matmul_variants.h"
#include "kernels/matmul/quantise_body.h"
#include "kernels/simd_neon.h"

namespace knap {

const MatmulKernel kNeonMatmul{
    .isa = Isa::neon,
    .multiply = MatmulBody<NeonSimd>::multiply,
    .quantise = QuantiseBody<NeonSimd>::quantise,
    .norm_and_quantise = QuantiseBody<NeonSimd>::norm_and_quantise,
    .gate_and_quantise = QuantiseBody<NeonSimd>::gate_and_quantise,
    .gate = QuantiseBody<NeonSimd>::gate,
};

}  // namespace knap

// Eight lanes: AVX2 with AVX-VNNI. Called only on machines that have them.
#include "kernels/matmul/matmul_body.h"
#include "kernels/matmul/matmul_variants.h"
#include "kernels/matmul/quantise_body.h"
#include "kernels/simd_avx2.h"

namespace knap {

const MatmulKernel kAvxVnniMatmul{
    .isa = Isa::avx_vnni,
    .multiply = MatmulBody<Avx2Simd>::multiply,
    .quantise = QuantiseBody<Avx2Simd>::quantise,
    .norm_and_quantise = QuantiseBody<Avx2Simd>::norm_and_quantise,
    .gate_and_quantise = QuantiseBody<Avx2Simd>::gate_and_quantise,
    .gate = QuantiseBody<Avx2Simd>::gate,
};

}  // namespace knap

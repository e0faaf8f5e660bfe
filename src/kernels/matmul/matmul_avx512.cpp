// Sixteen lanes: AVX-512 with VNNI. Called only on machines that have them.
#include "kernels/matmul/matmul_body.h"
#include "kernels/matmul/matmul_variants.h"
#include "kernels/matmul/quantise_body.h"
#include "kernels/simd_avx512.h"

namespace knap {

const MatmulKernel kAvx512Matmul{
    .isa = Isa::avx512,
    .multiply = MatmulBody<Avx512Simd>::multiply,
    .quantise = QuantiseBody<Avx512Simd>::quantise,
    .norm_and_quantise = QuantiseBody<Avx512Simd>::norm_and_quantise,
    .gate_and_quantise = QuantiseBody<Avx512Simd>::gate_and_quantise,
    .gate = QuantiseBody<Avx512Simd>::gate,
};

}  // namespace knap

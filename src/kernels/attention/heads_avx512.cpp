// Heads for AVX-512.
#include "kernels/attention/heads_body.h"
#include "kernels/attention/heads_variants.h"
#include "kernels/simd_avx512.h"

namespace knap {

const HeadsKernel kAvx512Heads = heads_kernel<Avx512Simd>(Isa::avx512);

}  // namespace knap

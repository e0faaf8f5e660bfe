// Heads for AVX2.
#include "kernels/attention/heads_body.h"
#include "kernels/attention/heads_variants.h"
#include "kernels/simd_avx2.h"

namespace knap {

const HeadsKernel kAvx2Heads = heads_kernel<Avx2Simd>(Isa::avx2);

}  // namespace knap

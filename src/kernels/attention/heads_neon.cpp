// Heads for NEON.
#include "kernels/attention/heads_body.h"
#include "kernels/attention/heads_variants.h"
#include "kernels/simd_neon.h"

namespace knap {

const HeadsKernel kNeonHeads = heads_kernel<NeonSimd>(Isa::neon);

}  // namespace knap

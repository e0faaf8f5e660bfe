// The plain reference for heads.
#include "kernels/attention/heads_body.h"
#include "kernels/attention/heads_variants.h"
#include "kernels/simd_plain.h"

namespace knap {

const HeadsKernel kPlainHeads = heads_kernel<PlainSimd>(Isa::plain);

}  // namespace knap

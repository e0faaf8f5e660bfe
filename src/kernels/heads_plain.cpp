// The reference.
#include "kernels/heads_body.h"
#include "kernels/heads_variants.h"
#include "kernels/simd_plain.h"

namespace knap {

const HeadsKernel kPlainHeads = heads_kernel<PlainSimd>(Isa::plain);

}  // namespace knap

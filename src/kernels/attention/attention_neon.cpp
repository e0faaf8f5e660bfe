// Attention for NEON.
#include "kernels/attention/attention_body.h"
#include "kernels/attention/attention_int8_body.h"
#include "kernels/attention/attention_softmax.h"
#include "kernels/attention/attention_variants.h"
#include "kernels/attention/int8_neon.h"
#include "kernels/simd_neon.h"

namespace knap {

const AttentionKernel kNeonAttention{
    .isa = Isa::neon,
    .run_chunk = AttentionBody<NeonSimd>::run_chunk,
    .run_int8_chunk = Int8AttentionBody<NeonSimd, NeonInt8>::run_chunk,
    .merge = AttentionSoftmax<NeonSimd>::merge,
};

}  // namespace knap

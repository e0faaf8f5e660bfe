// The plain reference for attention.
#include "kernels/attention/attention_body.h"
#include "kernels/attention/attention_int8_body.h"
#include "kernels/attention/attention_softmax.h"
#include "kernels/attention/attention_variants.h"
#include "kernels/attention/int8_plain.h"
#include "kernels/simd_plain.h"

namespace knap {

const AttentionKernel kPlainAttention{
    .isa = Isa::plain,
    .run_chunk = AttentionBody<PlainSimd>::run_chunk,
    .run_int8_chunk = Int8AttentionBody<PlainSimd, PlainInt8>::run_chunk,
    .merge = AttentionSoftmax<PlainSimd>::merge,
};

}  // namespace knap

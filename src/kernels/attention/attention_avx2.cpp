// Attention for AVX2.
#include "kernels/attention/attention_body.h"
#include "kernels/attention/attention_int8_body.h"
#include "kernels/attention/attention_softmax.h"
#include "kernels/attention/attention_variants.h"
#include "kernels/attention/int8_avx2.h"
#include "kernels/simd_avx2.h"

namespace knap {

const AttentionKernel kAvx2Attention{
    .isa = Isa::avx2,
    .run_chunk = AttentionBody<Avx2Simd>::run_chunk,
    .run_int8_chunk = Int8AttentionBody<Avx2Simd, Avx2Int8>::run_chunk,
    .merge = AttentionSoftmax<Avx2Simd>::merge,
};

}  // namespace knap

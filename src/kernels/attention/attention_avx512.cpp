// Attention for AVX-512.
#include "kernels/attention/attention_body.h"
#include "kernels/attention/attention_int8_body.h"
#include "kernels/attention/attention_softmax.h"
#include "kernels/attention/attention_variants.h"
#include "kernels/attention/int8_avx512.h"
#include "kernels/simd_avx512.h"

namespace knap {

const AttentionKernel kAvx512Attention{
    .isa = Isa::avx512,
    .run_chunk = AttentionBody<Avx512Simd>::run_chunk,
    .run_int8_chunk = Int8AttentionBody<Avx512Simd, Avx512Int8>::run_chunk,
    .merge = AttentionSoftmax<Avx512Simd>::merge,
};

}  // namespace knap

// Sixteen lanes: AVX-512F. Compiled for it; called only where the machine has it.
#include <immintrin.h>

#include "kernels/attention_body.h"
#include "kernels/attention_variants.h"

namespace knap {
namespace {

struct Avx512Simd {
    using Vector = __m512;
    static constexpr int kWidth = 16;
    // Of 32: GCC 12 spills with more than about half of them as accumulators
    static constexpr int kRegisters = 16;

    static Vector zero() { return _mm512_setzero_ps(); }
    static Vector broadcast(float x) { return _mm512_set1_ps(x); }
    static Vector load(const float* p) { return _mm512_loadu_ps(p); }
    static void store(float* p, Vector x) { _mm512_storeu_ps(p, x); }
    static Vector load_half(const std::uint16_t* p) {
        return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    }
    static Vector add(Vector a, Vector b) { return _mm512_add_ps(a, b); }
    static Vector multiply(Vector a, Vector b) { return _mm512_mul_ps(a, b); }
    static Vector fmadd(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
    static Vector max(Vector a, Vector b) { return _mm512_max_ps(a, b); }
    static Vector round(Vector x) {
        return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    }
    static Vector pow2(Vector n) { return _mm512_scalef_ps(_mm512_set1_ps(1.0f), n); }
    static Vector keep_if_at_least(Vector x, Vector bound, Vector value) {
        return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, bound, _CMP_GE_OQ), value);
    }
    static float reduce_max(Vector x) { return _mm512_reduce_max_ps(x); }
    static float reduce_add(Vector x) { return _mm512_reduce_add_ps(x); }
};

}  // namespace

const AttentionKernel kAvx512Attention{"avx512", AttentionBody<Avx512Simd>::run_chunk,
                                       AttentionBody<Avx512Simd>::merge};

}  // namespace knap

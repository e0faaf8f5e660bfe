// Eight lanes: AVX2 with FMA and F16C. Compiled for them; called only where the machine has them.
#include <immintrin.h>

#include "kernels/attention_body.h"
#include "kernels/attention_variants.h"

namespace knap {
namespace {

struct Avx2Simd {
    using Vector = __m256;
    static constexpr int kWidth = 8;
    static constexpr int kRegisters = 16;

    static Vector zero() { return _mm256_setzero_ps(); }
    static Vector broadcast(float x) { return _mm256_set1_ps(x); }
    static Vector load(const float* p) { return _mm256_loadu_ps(p); }
    static void store(float* p, Vector x) { _mm256_storeu_ps(p, x); }
    static Vector load_half(const std::uint16_t* p) {
        return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    }
    static Vector add(Vector a, Vector b) { return _mm256_add_ps(a, b); }
    static Vector multiply(Vector a, Vector b) { return _mm256_mul_ps(a, b); }
    static Vector fmadd(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
    static Vector max(Vector a, Vector b) { return _mm256_max_ps(a, b); }
    static Vector round(Vector x) {
        return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    }
    static Vector pow2(Vector n) {  // the exponent's bits, written directly
        const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
        return _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23));
    }
    static Vector keep_if_at_least(Vector x, Vector bound, Vector value) {
        return _mm256_and_ps(_mm256_cmp_ps(x, bound, _CMP_GE_OQ), value);
    }
    static float reduce_max(Vector x) {
        __m128 y = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
        y = _mm_max_ps(y, _mm_movehl_ps(y, y));
        return _mm_cvtss_f32(_mm_max_ss(y, _mm_movehdup_ps(y)));
    }
    static float reduce_add(Vector x) {
        __m128 y = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
        y = _mm_add_ps(y, _mm_movehl_ps(y, y));
        return _mm_cvtss_f32(_mm_add_ss(y, _mm_movehdup_ps(y)));
    }
};

}  // namespace

const AttentionKernel kAvx2Attention{"avx2", AttentionBody<Avx2Simd>::run_chunk,
                                     AttentionBody<Avx2Simd>::merge};

}  // namespace knap

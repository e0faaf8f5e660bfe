// Rounds four blocks at once, on x86: they share divisions and the instructions that add up their
// lanes. The numbers are those of QuantiseBody::put(), except for the sums of blocks with numbers
// that are not finite, which mean nothing.
#pragma once

#include <algorithm>
#include <cstddef>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "kernels/matmul/matmul.h"

namespace knap {
namespace {

inline constexpr float kMostQuantised = 127.0f;
// Blocks whose numbers are no larger become zeros: kMostQuantised divided by them may be infinite.
inline constexpr float kLeastQuantised = 4e-37f;

#if defined(__AVX2__)
template <typename Simd>
class FourBlocks {
  public:
    static constexpr std::size_t kBlocks = 4;

    // `n` blocks, one to four. If there are fewer than four, the last one is put several times.
    [[gnu::always_inline]] static void put(const float* values,
                                           QuantisedBlock* blocks,
                                           std::size_t n) {
        const float* numbers[kBlocks];
        QuantisedBlock* places[kBlocks];
#pragma GCC unroll 4
        for (std::size_t b = 0; b < kBlocks; ++b) {
            numbers[b] = values + std::min(b, n - 1) * kQuantBlock;
            places[b] = blocks + std::min(b, n - 1);
        }
        Vector highest[kBlocks];
#pragma GCC unroll 4
        for (std::size_t b = 0; b < kBlocks; ++b) {
            const float* x = numbers[b];
            highest[b] = Simd::abs(Simd::load(x));
#pragma GCC unroll 8
            for (int i = Simd::kWidth; i < kQuantBlock; i += Simd::kWidth) {
                highest[b] = Simd::max(highest[b], Simd::abs(Simd::load(x + i)));
            }
        }
        const __m128 max = largest_lanes(highest);
        const __m128 most = _mm_set1_ps(kMostQuantised);
        const __m128 inverse =
            _mm_and_ps(_mm_cmpgt_ps(max, _mm_set1_ps(kLeastQuantised)), _mm_div_ps(most, max));
        alignas(16) float inverses[kBlocks];
        _mm_store_ps(inverses, inverse);
        __m256i sums[kBlocks];
#pragma GCC unroll 4
        for (std::size_t b = 0; b < kBlocks; ++b) {
            const __m256i rounded = rounded_bytes(numbers[b], Simd::broadcast(inverses[b]));
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(places[b]->values), rounded);
            sums[b] = _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_set1_epi8(1), rounded),
                                        _mm256_set1_epi16(1));
        }
        put_sums(_mm_div_ps(max, most), sums, places);
    }

  private:
    using Vector = typename Simd::Vector;

    // --- of each of four vectors, its largest number ---

    static __m128 largest_lanes(const __m256 (&x)[kBlocks]) {
        const auto merge = [](__m256 a, __m256 b) {
            return _mm256_max_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
        };
        return largest_of_quads(merge(x[0], x[1]), merge(x[2], x[3]));
    }
    // Each quad of lanes has two numbers of one vector beside two of another: a b a b, c d c d.
    static __m128 largest_of_quads(__m256 ab, __m256 cd) {
        const __m256d low = _mm256_unpacklo_pd(_mm256_castps_pd(ab), _mm256_castps_pd(cd));
        const __m256d high = _mm256_unpackhi_pd(_mm256_castps_pd(ab), _mm256_castps_pd(cd));
        const __m256 quads = _mm256_max_ps(_mm256_castpd_ps(low), _mm256_castpd_ps(high));
        return _mm_max_ps(_mm256_castps256_ps128(quads), _mm256_extractf128_ps(quads, 1));
    }

    // --- 32 numbers times a factor, rounded; of numbers out of range, the low byte ---

    static __m256i rounded_bytes(const float* x, __m256 factor) {
        const __m256i byte = _mm256_set1_epi32(255);
        __m256i whole[4];
#pragma GCC unroll 4
        for (int v = 0; v < 4; ++v) {
            const __m256 scaled = _mm256_mul_ps(_mm256_loadu_ps(x + v * 8), factor);
            whole[v] = _mm256_and_si256(_mm256_cvtps_epi32(scaled), byte);
        }
        const __m256i bytes = _mm256_packus_epi16(_mm256_packus_epi32(whole[0], whole[1]),
                                                  _mm256_packus_epi32(whole[2], whole[3]));
        return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    }

#if defined(__AVX512F__)
    static __m128 largest_lanes(const __m512 (&x)[kBlocks]) {
        const auto merge = [](__m512 a, __m512 b) {
            const __m512 y = _mm512_max_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
            return _mm256_max_ps(_mm512_castps512_ps256(y), upper_half(y));
        };
        return largest_of_quads(merge(x[0], x[1]), merge(x[2], x[3]));
    }
    static __m256 upper_half(__m512 x) {
        return _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(x), 1));
    }
    static __m256i rounded_bytes(const float* x, __m512 factor) {
        const auto half = [&](const float* y) {
            return _mm512_cvtepi32_epi8(
                _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(y), factor)));
        };
        return _mm256_inserti128_si256(_mm256_castsi128_si256(half(x)), half(x + 16), 1);
    }
#endif

    // `sums` has those of four numbers: the first half of a block in the lower lanes.
    static void put_sums(__m128 scale,
                         const __m256i (&sums)[kBlocks],
                         QuantisedBlock* const (&blocks)[kBlocks]) {
        const auto merge = [](__m256i a, __m256i b) {
            return _mm256_add_epi32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
        };
        const __m256i ab = merge(sums[0], sums[1]);
        const __m256i cd = merge(sums[2], sums[3]);
        const __m256i halves =
            _mm256_add_epi32(_mm256_unpacklo_epi64(ab, cd), _mm256_unpackhi_epi64(ab, cd));
        const __m128i first = _mm256_castsi256_si128(halves);
        const __m128i second = _mm256_extracti128_si256(halves, 1);
        const __m128 scaled_sum = _mm_mul_ps(scale, _mm_cvtepi32_ps(_mm_add_epi32(first, second)));
        __m128 less[2] = {_mm_castsi128_ps(_mm_sub_epi32(_mm_setzero_si128(), first)),
                          _mm_castsi128_ps(_mm_sub_epi32(_mm_setzero_si128(), second))};
        // From four of each number to four numbers of each block.
        static_assert(sizeof(QuantisedBlock) - offsetof(QuantisedBlock, scale) ==
                      4 * sizeof(float));
        const __m128 low[2] = {_mm_unpacklo_ps(scale, scaled_sum),
                               _mm_unpacklo_ps(less[0], less[1])};
        const __m128 high[2] = {_mm_unpackhi_ps(scale, scaled_sum),
                                _mm_unpackhi_ps(less[0], less[1])};
        _mm_storeu_ps(&blocks[0]->scale, _mm_movelh_ps(low[0], low[1]));
        _mm_storeu_ps(&blocks[1]->scale, _mm_movehl_ps(low[1], low[0]));
        _mm_storeu_ps(&blocks[2]->scale, _mm_movelh_ps(high[0], high[1]));
        _mm_storeu_ps(&blocks[3]->scale, _mm_movehl_ps(high[1], high[0]));
    }
};
#endif

}  // namespace
}  // namespace knap

// Eight lanes: AVX2. Numbers are widened to sixteen bits, because the instruction that multiplies
// bytes saturates. Only for files compiled with these instructions.
#pragma once

#include <cstdint>
#include <cstring>

#include <immintrin.h>

namespace knap {
namespace {

struct Avx2Int8 {
    using Small = std::int16_t;
    // Lanes 0 to 3 and 4 to 7. Sums have two parts per lane, which to_floats() adds.
    struct Pair {
        __m256i low;
        __m256i high;
    };
    using Quads = Pair;
    using Sums = Pair;
    static constexpr int kMaxSums = 4;

    static void store(Small* p, __m256 x) {
        const __m256i whole = _mm256_cvtps_epi32(x);
        _mm_storeu_si128(
            reinterpret_cast<__m128i*>(p),
            _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1)));
    }
    static Sums zero() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
    static Quads load_keys(const std::uint8_t* p) {
        return {_mm256_cvtepu8_epi16(load_bytes(p)), _mm256_cvtepu8_epi16(load_bytes(p + 16))};
    }
    static Quads load_values(const std::int8_t* p) {
        return {_mm256_cvtepi8_epi16(load_bytes(p)), _mm256_cvtepi8_epi16(load_bytes(p + 16))};
    }
    static __m256i broadcast(const Small* p) {
        std::int64_t quad;
        std::memcpy(&quad, p, sizeof quad);
        return _mm256_set1_epi64x(quad);
    }
    static Sums add_keys(const Sums& sums, const Quads& keys, __m256i query) {
        return add(sums, keys, query);
    }
    static Sums add_values(const Sums& sums, const Quads& values, __m256i weights) {
        return add(sums, values, weights);
    }
    static __m256 to_floats(const Sums& sums) {
        constexpr int kLaneOrder = 0xD8;  // undoes the order of hadd, which adds within each half
        return _mm256_cvtepi32_ps(
            _mm256_permute4x64_epi64(_mm256_hadd_epi32(sums.low, sums.high), kLaneOrder));
    }

  private:
    static __m128i load_bytes(const void* p) {
        return _mm_loadu_si128(static_cast<const __m128i*>(p));
    }
    static Sums add(const Sums& sums, const Quads& cached, __m256i column) {
        return {_mm256_add_epi32(sums.low, _mm256_madd_epi16(cached.low, column)),
                _mm256_add_epi32(sums.high, _mm256_madd_epi16(cached.high, column))};
    }
};

}  // namespace
}  // namespace knap

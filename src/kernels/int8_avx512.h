// Sixteen lanes: AVX-512 with VNNI. Only for files that are compiled for it.
#pragma once

#include <cstdint>
#include <cstring>

#include <immintrin.h>

#include "kernels/simd_avx512.h"

namespace knap {
namespace {

struct Avx512Int8 {
    using Small = std::uint8_t;  // the bits of either sign
    using Quads = __m512i;
    using Sums = __m512i;
    static constexpr int kMaxSums = 24;

    static void store(Small* p, __m512 x) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                         _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(x)));
    }
    static Sums zero() { return _mm512_setzero_si512(); }
    static Quads load_keys(const std::uint8_t* p) { return _mm512_loadu_si512(p); }
    static Quads load_values(const std::int8_t* p) { return _mm512_loadu_si512(p); }
    static Quads broadcast(const Small* p) {
        std::int32_t quad;
        std::memcpy(&quad, p, sizeof quad);
        return _mm512_set1_epi32(quad);
    }
    static Sums add_keys(Sums sums, Quads keys, Quads query) {
        return Avx512Simd::dot(sums, keys, query);
    }
    static Sums add_values(Sums sums, Quads values, Quads weights) {
        return Avx512Simd::dot(sums, weights, values);
    }
    static __m512 to_floats(Sums sums) { return _mm512_cvtepi32_ps(sums); }
};

}  // namespace
}  // namespace knap

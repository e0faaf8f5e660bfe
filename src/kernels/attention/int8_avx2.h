// Eight lanes: AVX2. Numbers are widened to sixteen bits, because the instruction that multiplies
// bytes saturates. Only for files compiled with these instructions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <immintrin.h>

namespace knap {
namespace {

struct Avx2Int8 {
    using Small = std::int16_t;
    // Two of a lane's four numbers, as words: part 0 has the first and the third, which are the low
    // bytes of the cache's words, and part 1 has the others.
    using Quads = __m256i;
    using Sums = __m256i;
    static constexpr int kOtherRegisters = 2;

    template <typename Run>
    [[gnu::always_inline]] static void for_each_part(Run run) {
        run.template operator()<0>();
        run.template operator()<1>();
    }

    // Stores a quad in the order of its parts: 0, 2, 1, 3.
    static void store(Small* p, __m256 x) {
        const __m256i whole = _mm256_cvtps_epi32(x);
        const __m128i words =
            _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
        const __m128i order = _mm_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15);
        _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm_shuffle_epi8(words, order));
    }
    static Sums zero() { return _mm256_setzero_si256(); }
    template <int Part>
    static Quads load_keys(const std::uint8_t* p) {
        const __m256i bytes = load_bytes(p);
        return Part == 0 ? _mm256_and_si256(bytes, _mm256_set1_epi16(0xFF))
                         : _mm256_srli_epi16(bytes, 8);
    }
    template <int Part>
    static Quads load_values(const std::int8_t* p) {
        const __m256i bytes = load_bytes(p);
        return _mm256_srai_epi16(Part == 0 ? _mm256_slli_epi16(bytes, 8) : bytes, 8);
    }
    template <int Part>
    static Quads broadcast(const Small* p) {
        std::int32_t pair;
        std::memcpy(&pair, p + std::ptrdiff_t{Part} * 2, sizeof pair);
        return _mm256_set1_epi32(pair);
    }
    static Sums add_keys(Sums sums, Quads keys, Quads query) { return add(sums, keys, query); }
    static Sums add_values(Sums sums, Quads values, Quads weights) {
        return add(sums, values, weights);
    }
    static __m256 to_floats(Sums sums) { return _mm256_cvtepi32_ps(sums); }

  private:
    static __m256i load_bytes(const void* p) {
        return _mm256_loadu_si256(static_cast<const __m256i*>(p));
    }
    static Sums add(Sums sums, Quads cached, Quads column) {
        sums = _mm256_add_epi32(sums, _mm256_madd_epi16(cached, column));
        // GCC 12 would otherwise compute all products first and spill them.
        __asm__("" : "+x"(sums));
        return sums;
    }
};

}  // namespace
}  // namespace knap

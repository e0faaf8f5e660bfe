// Eight lanes: AVX2 with FMA and F16C, and AVX-VNNI in files compiled with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <immintrin.h>

namespace knap {
namespace {

struct Avx2Simd {
    using Vector = __m256;
    using Ints = __m256i;
    using Bytes = __m256i;
    using Table = __m256i;
    static constexpr int kWidth = 8;
    static constexpr int kRegisters = 16;
    static constexpr bool kHasMasks = false;

    static Vector zero() { return _mm256_setzero_ps(); }
    static Vector broadcast(float x) { return _mm256_set1_ps(x); }
    static Vector load(const float* p) { return _mm256_loadu_ps(p); }
    static void store(float* p, Vector x) { _mm256_storeu_ps(p, x); }
    static Vector load_half(const std::uint16_t* p) {
        return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    }
    static void store_half(std::uint16_t* p, Vector x) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                         _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    }
    static Vector load_bfloat(const std::uint16_t* p) {
        const __m256i bits =
            _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
        return _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16));
    }
    static Vector load_signed_bytes(const std::int8_t* p) {
        return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(load_row_bytes(p)));
    }
    static Vector load_six_bits(const std::uint8_t* low,
                                int low_shift,
                                const std::uint8_t* high,
                                int high_shift) {
        const __m128i nibbles = _mm_and_si128(
            _mm_srl_epi16(load_row_bytes(low), _mm_cvtsi32_si128(low_shift)), _mm_set1_epi8(15));
        const __m128i pairs = _mm_and_si128(
            _mm_srl_epi16(load_row_bytes(high), _mm_cvtsi32_si128(high_shift)), _mm_set1_epi8(3));
        const __m128i bytes = _mm_or_si128(nibbles, _mm_slli_epi16(pairs, 4));
        return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
    }
    static Vector load_four_bits(const std::uint8_t* p, int shift) {
        const __m128i bytes = _mm_and_si128(
            _mm_srl_epi16(load_row_bytes(p), _mm_cvtsi32_si128(shift)), _mm_set1_epi8(15));
        return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
    }
    static Vector load_exponents(const std::uint8_t* p) {
        const __m256i e = _mm256_cvtepu8_epi32(load_row_bytes(p));
        const __m256i one = _mm256_set1_epi32(1);
        return _mm256_castsi256_ps(
            _mm256_max_epi32(_mm256_slli_epi32(_mm256_sub_epi32(e, one), 23),
                             _mm256_slli_epi32(_mm256_add_epi32(e, one), 21)));
    }
    static Vector add(Vector a, Vector b) { return _mm256_add_ps(a, b); }
    static Vector subtract(Vector a, Vector b) { return _mm256_sub_ps(a, b); }
    static Vector multiply(Vector a, Vector b) { return _mm256_mul_ps(a, b); }
    static Vector divide(Vector a, Vector b) { return _mm256_div_ps(a, b); }
    static Vector fmadd(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
    static Vector fmsub(Vector a, Vector b, Vector c) { return _mm256_fmsub_ps(a, b, c); }
    // Each pair of neighbours (a0, a1) becomes (a0 c - a1 s, a0 s + a1 c), with (c, s) in the same
    // lanes of `turn`.
    static Vector rotate_neighbours(Vector a, Vector turn) {
        const Vector crossed = multiply(_mm256_movehdup_ps(a), _mm256_permute_ps(turn, 0xB1));
        return _mm256_fmaddsub_ps(_mm256_moveldup_ps(a), turn, crossed);
    }
    static Vector max(Vector a, Vector b) { return _mm256_max_ps(a, b); }
    static Vector abs(Vector x) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x); }
    static Vector round(Vector x) {
        return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    }
    static Vector times_power_of_two(Vector x, Vector n) {
        // Builds 2^n from its exponent bits. At n = -127 they are 0, and so is the result.
        const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
        return _mm256_mul_ps(x, _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23)));
    }
    static Vector select_at_least(Vector x, Vector bound, Vector value, Vector otherwise) {
        return _mm256_blendv_ps(otherwise, value, _mm256_cmp_ps(x, bound, _CMP_GE_OQ));
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

    static Vector to_floats(Ints x) { return _mm256_cvtepi32_ps(x); }
    static Ints round_to_ints(Vector x) { return _mm256_cvtps_epi32(x); }
    static Ints zero_ints() { return _mm256_setzero_si256(); }
    static Ints broadcast_int(std::int32_t x) { return _mm256_set1_epi32(x); }
    static Ints add(Ints a, Ints b) { return _mm256_add_epi32(a, b); }
    static std::int32_t reduce_add(Ints x) {
        __m128i y = _mm_add_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
        y = _mm_add_epi32(y, _mm_shuffle_epi32(y, _MM_SHUFFLE(1, 0, 3, 2)));
        return _mm_cvtsi128_si32(_mm_add_epi32(y, _mm_shuffle_epi32(y, _MM_SHUFFLE(2, 3, 0, 1))));
    }
    template <int N>
    static Ints shift_left(Ints x) {
        return _mm256_slli_epi32(x, N);
    }
    static void store_bytes(std::int8_t* p, Ints x) {  // the low byte of every lane
        const __m256i low = _mm256_shuffle_epi8(
            x, _mm256_set1_epi64x(static_cast<long long>(0xffffffff0c080400ULL)));
        const __m128i pair =
            _mm_unpacklo_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
        _mm_storel_epi64(reinterpret_cast<__m128i*>(p), pair);
    }

    static Bytes load_bytes(const std::byte* p) {
        return _mm256_load_si256(reinterpret_cast<const __m256i*>(p));
    }
    static Bytes broadcast_quad(const std::int8_t* p) {
        std::int32_t quad;
        std::memcpy(&quad, p, sizeof quad);
        return _mm256_set1_epi32(quad);
    }
    static Bytes low_nibbles(Bytes x) { return _mm256_and_si256(x, _mm256_set1_epi8(15)); }
    static Bytes high_nibbles(Bytes x) {
        return _mm256_and_si256(_mm256_srli_epi16(x, 4), _mm256_set1_epi8(15));
    }
    template <int Right, int Mask>
    static Bytes take_bits(Bytes x) {
        return _mm256_and_si256(_mm256_srli_epi16(x, Right), _mm256_set1_epi8(Mask));
    }
    template <int Left, int Mask>
    static Bytes merge_bits(Bytes code, Bytes high) {
        const Bytes moved =
            Left >= 0 ? _mm256_slli_epi16(high, Left) : _mm256_srli_epi16(high, -Left);
        return _mm256_or_si256(code, _mm256_and_si256(moved, _mm256_set1_epi8(Mask)));
    }
    static Table load_table(const std::uint8_t* p) {
        return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    }
    static Bytes look_up(Table table, Bytes x) { return _mm256_shuffle_epi8(table, x); }

#if defined(__AVXVNNI__)
    static constexpr bool kDotsOffsetBytes = true;
    static constexpr bool kHasShortSums = false;
    static Ints dot(Ints sum, Bytes codes, Bytes inputs) {
        return _mm256_dpbusd_avx_epi32(sum, codes, inputs);
    }
    static Ints dot_pair(Ints sum, Bytes codes_a, Bytes inputs_a, Bytes codes_b, Bytes inputs_b) {
        return dot(dot(sum, codes_a, inputs_a), codes_b, inputs_b);
    }
    static Ints dot_bytes(Ints sum, Bytes codes, Bytes inputs) {
        return dot(sum, codes, inputs);
    }
#else
    static constexpr bool kDotsOffsetBytes = false;
    static constexpr bool kHasShortSums = true;
    // maddubs adds two products with 16-bit saturation. With codes below 64 the sum of two such
    // results still fits.
    static Ints dot(Ints sum, Bytes codes, Bytes inputs) {
        return add_pairs(sum, _mm256_maddubs_epi16(codes, inputs));
    }
    static Ints dot_pair(Ints sum, Bytes codes_a, Bytes inputs_a, Bytes codes_b, Bytes inputs_b) {
        return add_pairs(sum, _mm256_add_epi16(_mm256_maddubs_epi16(codes_a, inputs_a),
                                               _mm256_maddubs_epi16(codes_b, inputs_b)));
    }
    // Multiplies |w| by the input with the sign of w.
    static Ints dot_bytes(Ints sum, Bytes codes, Bytes inputs) {
        const Bytes weights = _mm256_xor_si256(codes, _mm256_set1_epi8(-128));
        return add_pairs(
            sum, _mm256_maddubs_epi16(_mm256_abs_epi8(weights), _mm256_sign_epi8(inputs, weights)));
    }

    // Sums of 16 bits. Two products of each quad, without saturation for codes below 64.
    static Ints dot_shorts(Bytes codes, Bytes inputs) {
        return _mm256_maddubs_epi16(codes, inputs);
    }
    static Ints add_shorts(Ints a, Ints b) {
        return _mm256_add_epi16(a, b);
    }
    static Ints sum_shorts(Ints x) {
        return _mm256_madd_epi16(x, _mm256_set1_epi16(1));
    }

    // Products of words. A quad of bytes becomes an even pair, bytes 0 and 2, and an odd pair,
    // bytes 1 and 3: unsigned for weights, signed for inputs.
    static Bytes even_words(Bytes x) {
        return _mm256_and_si256(x, _mm256_set1_epi16(255));
    }
    static Bytes odd_words(Bytes x) {
        return _mm256_srli_epi16(x, 8);
    }
    // 32 inputs, for every quad the even and then the odd pair.
    static void widen(const std::int8_t* values, std::int16_t* words) {
        const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values));
        const __m256i even = _mm256_srai_epi16(_mm256_slli_epi16(x, 8), 8);
        const __m256i odd = _mm256_srai_epi16(x, 8);
        const __m256i low = _mm256_unpacklo_epi32(even, odd);
        const __m256i high = _mm256_unpackhi_epi32(even, odd);
        auto* to = reinterpret_cast<__m256i*>(words);
        _mm256_storeu_si256(to, _mm256_permute2x128_si256(low, high, 0x20));
        _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(low, high, 0x31));
    }
    static Bytes broadcast_words(const std::int16_t* pair) {
        return broadcast_quad(reinterpret_cast<const std::int8_t*>(pair));
    }
    static Ints dot_words(Bytes words, Bytes inputs) {
        return _mm256_madd_epi16(words, inputs);
    }
#endif

    static void pin(Bytes& x) {
        __asm__("" : "+x"(x));
    }
    static void pin(Vector& x) {
        __asm__("" : "+x"(x));
    }
    static void prefetch(const std::byte* p) {
        _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T0);
    }
    static void prefetch_to_second_cache(const std::byte* p) {
        _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T1);
    }

  private:
    static __m128i load_row_bytes(const void* p) {
        return _mm_loadl_epi64(static_cast<const __m128i*>(p));
    }
    static Ints add_pairs(Ints sum, __m256i pairs) {
        return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
    }
};

}  // namespace
}  // namespace knap

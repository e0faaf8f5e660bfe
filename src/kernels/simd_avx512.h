// Sixteen lanes: AVX-512 with VNNI. Only for files compiled with these instructions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <immintrin.h>

namespace knap {
namespace {

struct Avx512Simd {
    using Vector = __m512;
    using Ints = __m512i;
    using Bytes = __m512i;
    using Table = __m512i;
    static constexpr int kWidth = 16;
    static constexpr int kRegisters = 32;
    static constexpr bool kHasMasks = true;  // to select lanes costs no more than to compare them
    // dot_bytes() must start from -128 times the sum of the inputs.
    static constexpr bool kDotsOffsetBytes = true;
    static constexpr bool kHasShortSums = false;  // 16-bit sums, for lack of dot products

    static Vector zero() { return _mm512_setzero_ps(); }
    static Vector broadcast(float x) { return _mm512_set1_ps(x); }
    static Vector load(const float* p) { return _mm512_loadu_ps(p); }
    static void store(float* p, Vector x) { _mm512_storeu_ps(p, x); }
    static Vector load_half(const std::uint16_t* p) {
        return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    }
    static void store_half(std::uint16_t* p, Vector x) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                            _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    }
    static Vector load_bfloat(const std::uint16_t* p) {
        const __m512i bits =
            _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
        return _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
    }
    static Vector load_signed_bytes(const std::int8_t* p) {
        return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(load_row_bytes(p)));
    }
    // Six-bit numbers: (low >> low_shift & 15) + 16 * (high >> high_shift & 3).
    static Vector load_six_bits(const std::uint8_t* low,
                                int low_shift,
                                const std::uint8_t* high,
                                int high_shift) {
        const __m128i nibbles = _mm_and_si128(
            _mm_srl_epi16(load_row_bytes(low), _mm_cvtsi32_si128(low_shift)), _mm_set1_epi8(15));
        const __m128i pairs = _mm_and_si128(
            _mm_srl_epi16(load_row_bytes(high), _mm_cvtsi32_si128(high_shift)), _mm_set1_epi8(3));
        const __m128i bytes = _mm_or_si128(nibbles, _mm_slli_epi16(pairs, 4));
        return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes));
    }
    // Four-bit numbers: p >> shift & 15.
    static Vector load_four_bits(const std::uint8_t* p, int shift) {
        const __m128i bytes = _mm_and_si128(
            _mm_srl_epi16(load_row_bytes(p), _mm_cvtsi32_si128(shift)), _mm_set1_epi8(15));
        return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes));
    }
    // 2^(p[i] - 128). Below 2^-126 only a bit of the fraction is set.
    static Vector load_exponents(const std::uint8_t* p) {
        const __m512i e = _mm512_cvtepu8_epi32(load_row_bytes(p));
        const __m512i one = _mm512_set1_epi32(1);
        return _mm512_castsi512_ps(
            _mm512_max_epi32(_mm512_slli_epi32(_mm512_sub_epi32(e, one), 23),
                             _mm512_slli_epi32(_mm512_add_epi32(e, one), 21)));
    }
    static Vector add(Vector a, Vector b) { return _mm512_add_ps(a, b); }
    static Vector subtract(Vector a, Vector b) { return _mm512_sub_ps(a, b); }
    static Vector multiply(Vector a, Vector b) { return _mm512_mul_ps(a, b); }
    static Vector divide(Vector a, Vector b) { return _mm512_div_ps(a, b); }
    static Vector fmadd(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
    static Vector fmsub(Vector a, Vector b, Vector c) { return _mm512_fmsub_ps(a, b, c); }
    // Each pair of neighbours (a0, a1) becomes (a0 c - a1 s, a0 s + a1 c), with (c, s) in the same
    // lanes of `turn`.
    static Vector rotate_neighbours(Vector a, Vector turn) {
        const Vector crossed = multiply(_mm512_movehdup_ps(a), _mm512_permute_ps(turn, 0xB1));
        return _mm512_fmaddsub_ps(_mm512_moveldup_ps(a), turn, crossed);
    }
    static Vector max(Vector a, Vector b) { return _mm512_max_ps(a, b); }
    static Vector abs(Vector x) { return _mm512_abs_ps(x); }
    static Vector round(Vector x) {
        return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    }
    // x * 2^n for integers n.
    static Vector times_power_of_two(Vector x, Vector n) { return _mm512_scalef_ps(x, n); }
    // x >= bound ? value : otherwise
    static Vector select_at_least(Vector x, Vector bound, Vector value, Vector otherwise) {
        return _mm512_mask_mov_ps(otherwise, _mm512_cmp_ps_mask(x, bound, _CMP_GE_OQ), value);
    }
    static float reduce_max(Vector x) { return _mm512_reduce_max_ps(x); }
    // The sum of the lanes, added in halves, as in the other vector types.
    static float reduce_add(Vector x) {
        const __m256 high = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(x), 1));
        const __m256 y = _mm256_add_ps(_mm512_castps512_ps256(x), high);
        __m128 z = _mm_add_ps(_mm256_castps256_ps128(y), _mm256_extractf128_ps(y, 1));
        z = _mm_add_ps(z, _mm_movehl_ps(z, z));
        return _mm_cvtss_f32(_mm_add_ss(z, _mm_movehdup_ps(z)));
    }

    static Vector to_floats(Ints x) { return _mm512_cvtepi32_ps(x); }
    static Ints round_to_ints(Vector x) { return _mm512_cvtps_epi32(x); }
    static Ints load_ints(const std::int32_t* p) { return _mm512_loadu_si512(p); }
    static Ints zero_ints() { return _mm512_setzero_si512(); }
    static Ints broadcast_int(std::int32_t x) { return _mm512_set1_epi32(x); }
    static Ints add(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
    static std::int32_t reduce_add(Ints x) { return _mm512_reduce_add_epi32(x); }
    template <int N>
    static Ints shift_left(Ints x) {
        return _mm512_slli_epi32(x, N);
    }
    static void store_bytes(std::int8_t* p, Ints x) {  // the low byte of every lane
        _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(x));
    }

    static Bytes load_bytes(const std::byte* p) { return _mm512_load_si512(p); }
    static Bytes broadcast_quad(const std::int8_t* p) {
        std::int32_t quad;
        std::memcpy(&quad, p, sizeof quad);
        return _mm512_set1_epi32(quad);
    }
    static Bytes low_nibbles(Bytes x) { return _mm512_and_si512(x, _mm512_set1_epi8(15)); }
    static Bytes high_nibbles(Bytes x) {
        return _mm512_and_si512(_mm512_srli_epi16(x, 4), _mm512_set1_epi8(15));
    }
    template <int Right, int Mask>
    static Bytes take_bits(Bytes x) {
        return _mm512_and_si512(_mm512_srli_epi16(x, Right), _mm512_set1_epi8(Mask));
    }
    // ORs into `code` the bits of `high`, shifted left by `Left` (right if negative), that `Mask`
    // selects.
    template <int Left, int Mask>
    static Bytes merge_bits(Bytes code, Bytes high) {
        const Bytes moved =
            Left >= 0 ? _mm512_slli_epi16(high, Left) : _mm512_srli_epi16(high, -Left);
        return _mm512_or_si512(code, _mm512_and_si512(moved, _mm512_set1_epi8(Mask)));
    }
    // Sixteen bytes, and the one of them that each byte of `x`, below 16, is the index of.
    static Table load_table(const std::uint8_t* p) {
        return _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    }
    static Bytes look_up(Table table, Bytes x) { return _mm512_shuffle_epi8(table, x); }
    // Adds the dot product of four codes below 64 and four signed inputs to every lane of `sum`.
    static Ints dot(Ints sum, Bytes codes, Bytes inputs) {
        // The same as _mm512_dpbusd_epi32, for which GCC 12 copies the sums back and forth.
        __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(codes), "v"(inputs));
        return sum;
    }
    static Ints dot_pair(Ints sum, Bytes codes_a, Bytes inputs_a, Bytes codes_b, Bytes inputs_b) {
        return dot(dot(sum, codes_a, inputs_a), codes_b, inputs_b);
    }
    // The same for codes 128 + w of signed weights w (see kDotsOffsetBytes).
    static Ints dot_bytes(Ints sum, Bytes codes, Bytes inputs) { return dot(sum, codes, inputs); }

    // Keeps a value in a register, because the compiler would load it again for every use.
    static void pin(Bytes& x) { __asm__("" : "+v"(x)); }
    static void pin(Vector& x) { __asm__("" : "+v"(x)); }
    static void prefetch(const std::byte* p) {
        _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T0);
    }
    static void prefetch_to_second_cache(const std::byte* p) {
        _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T1);
    }

  private:
    static __m128i load_row_bytes(const void* p) {
        return _mm_loadu_si128(static_cast<const __m128i*>(p));
    }
};

}  // namespace
}  // namespace knap

// One lane, in portable code: the reference for the vector types (simd_neon.h, simd_avx2.h,
// simd_avx512.h). Kernels are templates over such a type. Each file compiled for an instruction set
// includes one of these headers. Everything is in an unnamed namespace so that no two of those
// files share code.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "ggml.h"

namespace knap {
namespace {

struct PlainSimd {
    using Vector = float;
    using Ints = std::int32_t;
    using Bytes = std::array<std::uint8_t, 4>;
    using Table = const std::uint8_t*;
    static constexpr int kWidth = 1;
    static constexpr int kRegisters = 16;
    static constexpr bool kHasMasks = false;
    static constexpr bool kDotsOffsetBytes = true;

    static Vector zero() { return 0.0f; }
    static Vector broadcast(float x) { return x; }
    static Vector load(const float* p) { return *p; }
    static void store(float* p, Vector x) { *p = x; }
    static Vector load_half(const std::uint16_t* p) { return ggml_fp16_to_fp32(*p); }
    static void store_half(std::uint16_t* p, Vector x) { *p = ggml_fp32_to_fp16(x); }
    static Vector load_bfloat(const std::uint16_t* p) { return ggml_bf16_to_fp32({*p}); }
    static Vector load_signed_bytes(const std::int8_t* p) { return static_cast<float>(*p); }
    static Vector load_six_bits(const std::uint8_t* low,
                                int low_shift,
                                const std::uint8_t* high,
                                int high_shift) {
        return static_cast<float>((*low >> low_shift & 15) + (*high >> high_shift & 3) * 16);
    }
    static Vector load_four_bits(const std::uint8_t* p, int shift) {
        return static_cast<float>(*p >> shift & 15);
    }
    static Vector load_exponents(const std::uint8_t* p) { return std::ldexp(1.0f, *p - 128); }
    static Vector add(Vector a, Vector b) { return a + b; }
    static Vector subtract(Vector a, Vector b) { return a - b; }
    static Vector multiply(Vector a, Vector b) { return a * b; }
    static Vector divide(Vector a, Vector b) { return a / b; }
    static Vector fmadd(Vector a, Vector b, Vector c) { return std::fma(a, b, c); }
    static Vector fmsub(Vector a, Vector b, Vector c) { return std::fma(a, b, -c); }
    static Vector max(Vector a, Vector b) { return a > b ? a : b; }
    static Vector abs(Vector x) { return std::fabs(x); }
    static Vector round(Vector x) { return std::nearbyint(x); }
    // x * 2^n for integers n of at least -127, at which it is 0.
    static Vector times_power_of_two(Vector x, Vector n) {
        return n < -126.0f ? 0.0f : std::ldexp(x, static_cast<int>(n));
    }
    static Vector select_at_least(Vector x, Vector bound, Vector value, Vector otherwise) {
        return x >= bound ? value : otherwise;
    }
    static float reduce_max(Vector x) { return x; }
    static float reduce_add(Vector x) { return x; }

    static Vector to_floats(Ints x) { return static_cast<float>(x); }
    // NaN and out-of-range numbers give INT32_MIN, as the vector instructions do.
    static Ints round_to_ints(Vector x) {
        constexpr float kLimit = 2147483648.0f;
        return std::fabs(x) < kLimit ? static_cast<Ints>(std::nearbyint(x)) : INT32_MIN;
    }
    static Ints load_ints(const std::int32_t* p) { return *p; }
    static Ints zero_ints() { return 0; }
    static Ints broadcast_int(std::int32_t x) { return x; }
    static Ints add(Ints a, Ints b) {
        return static_cast<Ints>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
    }
    static std::int32_t reduce_add(Ints x) { return x; }
    template <int N>
    static Ints shift_left(Ints x) {
        return static_cast<Ints>(static_cast<std::uint32_t>(x) << N);
    }
    static void store_bytes(std::int8_t* p, Ints x) { *p = static_cast<std::int8_t>(x); }

    static Bytes load_bytes(const std::byte* p) {
        Bytes bytes;
        std::memcpy(bytes.data(), p, bytes.size());
        return bytes;
    }
    static Bytes broadcast_quad(const std::int8_t* p) {
        return load_bytes(reinterpret_cast<const std::byte*>(p));
    }
    static Bytes low_nibbles(Bytes x) {
        return each(x, [](unsigned byte) { return byte & 15U; });
    }
    static Bytes high_nibbles(Bytes x) {
        return each(x, [](unsigned byte) { return byte >> 4U; });
    }
    template <int Right, int Mask>
    static Bytes take_bits(Bytes x) {
        return each(x, [](unsigned byte) { return byte >> Right & Mask; });
    }
    template <int Left, int Mask>
    static Bytes merge_bits(Bytes code, Bytes high) {
        for (std::size_t i = 0; i < code.size(); ++i) {
            const unsigned moved = Left >= 0 ? unsigned{high[i]} << Left : high[i] >> -Left;
            code[i] |= static_cast<std::uint8_t>(moved & Mask);
        }
        return code;
    }
    static Table load_table(const std::uint8_t* p) { return p; }
    static Bytes look_up(Table table, Bytes x) {
        return each(x, [table](unsigned byte) { return table[byte]; });
    }
    static Ints dot(Ints sum, Bytes codes, Bytes inputs) {
        for (std::size_t i = 0; i < codes.size(); ++i) {
            sum = add(sum, codes[i] * static_cast<std::int8_t>(inputs[i]));
        }
        return sum;
    }
    static Ints dot_pair(Ints sum, Bytes codes_a, Bytes inputs_a, Bytes codes_b, Bytes inputs_b) {
        return dot(dot(sum, codes_a, inputs_a), codes_b, inputs_b);
    }
    static Ints dot_bytes(Ints sum, Bytes codes, Bytes inputs) { return dot(sum, codes, inputs); }

    static void pin(const Bytes& /*x*/) {}
    static void pin(const Vector& /*x*/) {}
    static void prefetch(const std::byte* /*p*/) {}
    static void prefetch_to_second_cache(const std::byte* /*p*/) {}

  private:
    template <typename Change>
    static Bytes each(Bytes x, Change change) {
        for (std::uint8_t& byte : x) {
            byte = static_cast<std::uint8_t>(change(byte));
        }
        return x;
    }
};

}  // namespace
}  // namespace knap

// Four lanes: NEON with the dot product instructions of ARMv8.2. Only for files compiled with them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <arm_neon.h>

namespace knap {
namespace {

struct NeonSimd {
    using Vector = float32x4_t;
    using Ints = int32x4_t;
    using Bytes = uint8x16_t;
    using Table = uint8x16_t;
    static constexpr int kWidth = 4;
    static constexpr int kRegisters = 32;
    static constexpr bool kHasMasks = false;
    static constexpr bool kDotsOffsetBytes = false;

    static Vector zero() { return vdupq_n_f32(0.0f); }
    static Vector broadcast(float x) { return vdupq_n_f32(x); }
    static Vector load(const float* p) { return vld1q_f32(p); }
    static void store(float* p, Vector x) { vst1q_f32(p, x); }
    static Vector load_half(const std::uint16_t* p) {
        return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
    }
    static void store_half(std::uint16_t* p, Vector x) {
        vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(x)));
    }
    static Vector load_bfloat(const std::uint16_t* p) {
        return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16));
    }
    static Vector load_signed_bytes(const std::int8_t* p) {
        return vcvtq_f32_s32(
            vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_u8(load_row_bytes(p))))));
    }
    static Vector load_six_bits(const std::uint8_t* low,
                                int low_shift,
                                const std::uint8_t* high,
                                int high_shift) {
        const uint8x8_t pairs =
            vand_u8(vshl_u8(load_row_bytes(high), right(high_shift)), vdup_n_u8(3));
        return widen(vorr_u8(row_nibbles(low, low_shift), vshl_n_u8(pairs, 4)));
    }
    static Vector load_four_bits(const std::uint8_t* p, int shift) {
        return widen(row_nibbles(p, shift));
    }
    static Vector load_exponents(const std::uint8_t* p) {
        const int32x4_t e = vreinterpretq_s32_u32(widen_to_ints(load_row_bytes(p)));
        const int32x4_t one = vdupq_n_s32(1);
        return vreinterpretq_f32_s32(
            vmaxq_s32(vshlq_n_s32(vsubq_s32(e, one), 23), vshlq_n_s32(vaddq_s32(e, one), 21)));
    }
    static Vector add(Vector a, Vector b) { return vaddq_f32(a, b); }
    static Vector subtract(Vector a, Vector b) { return vsubq_f32(a, b); }
    static Vector multiply(Vector a, Vector b) { return vmulq_f32(a, b); }
    static Vector divide(Vector a, Vector b) { return vdivq_f32(a, b); }
    static Vector fmadd(Vector a, Vector b, Vector c) { return vfmaq_f32(c, a, b); }
    static Vector fmsub(Vector a, Vector b, Vector c) { return vfmaq_f32(vnegq_f32(c), a, b); }
    static Vector rotate_neighbours(Vector a, Vector turn) {
        const Vector crossed = multiply(vtrn2q_f32(a, a), vrev64q_f32(turn));
        // Negates the first of each pair.
        const uint32x4_t signs = vreinterpretq_u32_u64(vdupq_n_u64(0x80000000U));
        const Vector added =
            vreinterpretq_f32_u32(veorq_u32(vreinterpretq_u32_f32(crossed), signs));
        return fmadd(vtrn1q_f32(a, a), turn, added);
    }
    // The second where one is NaN, as on x86.
    static Vector max(Vector a, Vector b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
    static Vector abs(Vector x) { return vabsq_f32(x); }
    static Vector round(Vector x) { return vrndnq_f32(x); }
    static Vector times_power_of_two(Vector x, Vector n) {
        // Builds 2^n from its exponent bits. At n = -127 they are 0, and so is the result.
        const int32x4_t exponent = vaddq_s32(vcvtnq_s32_f32(n), vdupq_n_s32(127));
        return vmulq_f32(x, vreinterpretq_f32_s32(vshlq_n_s32(exponent, 23)));
    }
    static Vector select_at_least(Vector x, Vector bound, Vector value, Vector otherwise) {
        return vbslq_f32(vcgeq_f32(x, bound), value, otherwise);
    }
    static float reduce_max(Vector x) {
        const Vector pairs = max(x, vextq_f32(x, x, 2));
        return vgetq_lane_f32(max(pairs, vrev64q_f32(pairs)), 0);
    }
    static float reduce_add(Vector x) {
        const Vector pairs = vaddq_f32(x, vextq_f32(x, x, 2));
        return vgetq_lane_f32(pairs, 0) + vgetq_lane_f32(pairs, 1);
    }

    static Vector to_floats(Ints x) { return vcvtq_f32_s32(x); }
    // NaN and out-of-range numbers give INT32_MIN, as on x86.
    static Ints round_to_ints(Vector x) {
        const uint32x4_t is_in_range = vcaltq_f32(x, vdupq_n_f32(2147483648.0f));
        return vbslq_s32(is_in_range, vcvtnq_s32_f32(x), vdupq_n_s32(INT32_MIN));
    }
    static Ints zero_ints() { return vdupq_n_s32(0); }
    static Ints broadcast_int(std::int32_t x) { return vdupq_n_s32(x); }
    static Ints add(Ints a, Ints b) { return vaddq_s32(a, b); }
    static std::int32_t reduce_add(Ints x) { return vaddvq_s32(x); }
    template <int N>
    static Ints shift_left(Ints x) {
        return vshlq_n_s32(x, N);
    }
    static void store_bytes(std::int8_t* p, Ints x) {  // the low byte of every lane
        const int16x4_t words = vmovn_s32(x);
        const int8x8_t bytes = vmovn_s16(vcombine_s16(words, words));
        const std::uint32_t quad = vget_lane_u32(vreinterpret_u32_s8(bytes), 0);
        std::memcpy(p, &quad, sizeof quad);
    }

    static Bytes load_bytes(const std::byte* p) {
        return vld1q_u8(reinterpret_cast<const std::uint8_t*>(p));
    }
    static Bytes broadcast_quad(const std::int8_t* p) {
        std::uint32_t quad;
        std::memcpy(&quad, p, sizeof quad);
        return vreinterpretq_u8_u32(vdupq_n_u32(quad));
    }
    static Bytes low_nibbles(Bytes x) { return take_bits<0, 15>(x); }
    static Bytes high_nibbles(Bytes x) { return vshrq_n_u8(x, 4); }
    template <int Right, int Mask>
    static Bytes take_bits(Bytes x) {
        return vandq_u8(moved<-Right>(x), vdupq_n_u8(Mask));
    }
    template <int Left, int Mask>
    static Bytes merge_bits(Bytes code, Bytes high) {
        return vorrq_u8(code, vandq_u8(moved<Left>(high), vdupq_n_u8(Mask)));
    }
    static Table load_table(const std::uint8_t* p) { return vld1q_u8(p); }
    static Bytes look_up(Table table, Bytes x) { return vqtbl1q_u8(table, x); }

    static Ints dot(Ints sum, Bytes codes, Bytes inputs) {
        return vdotq_s32(sum, vreinterpretq_s8_u8(codes), vreinterpretq_s8_u8(inputs));
    }
    static Ints dot_pair(Ints sum, Bytes codes_a, Bytes inputs_a, Bytes codes_b, Bytes inputs_b) {
        return dot(dot(sum, codes_a, inputs_a), codes_b, inputs_b);
    }
    static Ints dot_bytes(Ints sum, Bytes codes, Bytes inputs) {
        return dot(sum, veorq_u8(codes, vdupq_n_u8(128)), inputs);
    }

    // The compiler keeps values in its 32 registers by itself.
    static void pin(const Bytes& /*x*/) {}
    static void pin(const Vector& /*x*/) {}
    static void prefetch(const std::byte* p) { __builtin_prefetch(p); }
    static void prefetch_to_second_cache(const std::byte* p) { __builtin_prefetch(p, 0, 2); }

  private:
    // A byte of every lane, in the low half.
    static uint8x8_t load_row_bytes(const void* p) {
        std::uint32_t bytes;
        std::memcpy(&bytes, p, sizeof bytes);
        return vreinterpret_u8_u32(vdup_n_u32(bytes));
    }
    static uint32x4_t widen_to_ints(uint8x8_t bytes) {
        return vmovl_u16(vget_low_u16(vmovl_u8(bytes)));
    }
    static Vector widen(uint8x8_t bytes) { return vcvtq_f32_u32(widen_to_ints(bytes)); }
    static int8x8_t right(int shift) { return vdup_n_s8(static_cast<std::int8_t>(-shift)); }
    static uint8x8_t row_nibbles(const std::uint8_t* p, int shift) {
        return vand_u8(vshl_u8(load_row_bytes(p), right(shift)), vdup_n_u8(15));
    }
    template <int Left>
    static Bytes moved(Bytes x) {
        if constexpr (Left > 0) {
            return vshlq_n_u8(x, Left);
        } else if constexpr (Left < 0) {
            return vshrq_n_u8(x, -Left);
        } else {
            return x;
        }
    }
};

}  // namespace
}  // namespace knap

// Four lanes: NEON. Numbers are widened to sixteen bits, in which a product of two bytes fits. Only
// for files compiled with these instructions.
#pragma once

#include <cstdint>

#include <arm_neon.h>

namespace knap {
namespace {

struct NeonInt8 {
    using Small = std::int16_t;
    // Lanes 0 and 1, lanes 2 and 3. Sums have two parts per lane, which to_floats() adds.
    struct Quads {
        int16x8_t low;
        int16x8_t high;
    };
    struct Sums {
        int32x4_t low;
        int32x4_t high;
    };
    static constexpr int kOtherRegisters = 16;  // sums and what is multiplied take two each

    template <typename Run>
    static void for_each_part(Run run) {
        run.template operator()<0>();
    }

    static void store(Small* p, float32x4_t x) { vst1_s16(p, vmovn_s32(vcvtnq_s32_f32(x))); }
    static Sums zero() { return {vdupq_n_s32(0), vdupq_n_s32(0)}; }
    template <int Part>
    static Quads load_keys(const std::uint8_t* p) {
        const uint8x16_t bytes = vld1q_u8(p);
        return {vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(bytes))),
                vreinterpretq_s16_u16(vmovl_high_u8(bytes))};
    }
    template <int Part>
    static Quads load_values(const std::int8_t* p) {
        const int8x16_t bytes = vld1q_s8(p);
        return {vmovl_s8(vget_low_s8(bytes)), vmovl_high_s8(bytes)};
    }
    template <int Part>
    static Quads broadcast(const Small* p) {
        const int16x4_t quad = vld1_s16(p);
        const int16x8_t twice = vcombine_s16(quad, quad);
        return {twice, twice};
    }
    static Sums add_keys(const Sums& sums, const Quads& keys, const Quads& query) {
        return add(sums, keys, query);
    }
    static Sums add_values(const Sums& sums, const Quads& values, const Quads& weights) {
        return add(sums, values, weights);
    }
    static float32x4_t to_floats(const Sums& sums) {
        return vcvtq_f32_s32(vpaddq_s32(sums.low, sums.high));
    }

  private:
    static Sums add(const Sums& sums, const Quads& cached, const Quads& column) {
        return {vpadalq_s16(sums.low, vmulq_s16(cached.low, column.low)),
                vpadalq_s16(sums.high, vmulq_s16(cached.high, column.high))};
    }
};

}  // namespace
}  // namespace knap

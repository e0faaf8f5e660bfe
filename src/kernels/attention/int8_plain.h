// Dot products of eight-bit integers, four at a time, in one lane. This is the reference:
// int8_neon.h, int8_avx2.h and int8_avx512.h give bit-identical results. These types complement the
// vector types of simd_*.h and have the same number of lanes. Keys come with kKeyOffset added, as
// the cache stores them.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

namespace knap {
namespace {

struct PlainInt8 {
    using Small = std::int16_t;  // holds -127 .. 127 and 0 .. 255
    using Quads = std::array<int, 4>;
    using Sums = std::int32_t;
    static constexpr int kOtherRegisters = 1;  // than those of sums and of what is multiplied

    // Calls run.operator()<Part>() for the parts in which the numbers of a quad are multiplied.
    template <typename Run>
    static void for_each_part(Run run) {
        run.template operator()<0>();
    }

    static void store(Small* p, float x) { *p = static_cast<Small>(std::nearbyint(x)); }
    static Sums zero() { return 0; }
    // Four numbers of each lane, from the cache.
    template <int Part>
    static Quads load_keys(const std::uint8_t* p) {
        return {p[0], p[1], p[2], p[3]};
    }
    template <int Part>
    static Quads load_values(const std::int8_t* p) {
        return {p[0], p[1], p[2], p[3]};
    }
    // Four numbers of a column, for every lane.
    template <int Part>
    static Quads broadcast(const Small* p) {
        return {p[0], p[1], p[2], p[3]};
    }
    static Sums add_keys(Sums sums, const Quads& keys, const Quads& query) {
        return sums + dot(keys, query);
    }
    static Sums add_values(Sums sums, const Quads& values, const Quads& weights) {
        return sums + dot(values, weights);
    }
    static float to_floats(Sums sums) { return static_cast<float>(sums); }

  private:
    static std::int32_t dot(const Quads& a, const Quads& b) {
        return a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3];
    }
};

}  // namespace
}  // namespace knap

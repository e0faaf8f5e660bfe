// 2^x on vectors, for kernels that are templates over a vector type.
#pragma once

namespace knap {
namespace {

inline constexpr float kLog2E = 1.44269504088896341f;

// Valid for x up to about 0; exactly 0 for -infinity. The polynomial comes from the Cephes library.
template <typename Simd>
typename Simd::Vector power_of_two(typename Simd::Vector x) {
    using Vector = typename Simd::Vector;
    constexpr float kLowest = -160.0f;  // 2^-160 is 0
    const Vector clamped = Simd::max(x, Simd::broadcast(kLowest));
    const Vector whole = Simd::round(clamped);
    const Vector rest = Simd::subtract(clamped, whole);
    Vector p = Simd::broadcast(1.535336188319500e-4f);
    for (const float coefficient :
         {1.339887440266574e-3f, 9.618437357674640e-3f, 5.550332471162809e-2f,
          2.402264791363012e-1f, 6.931472028550421e-1f, 1.0f}) {
        p = Simd::fmadd(p, rest, Simd::broadcast(coefficient));
    }
    return Simd::times_power_of_two(p, whole);
}

}  // namespace
}  // namespace knap

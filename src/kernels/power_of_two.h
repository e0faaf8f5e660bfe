// 2^x on vectors, for kernels that are templates over a vector type.
#pragma once

namespace knap {
namespace {

inline constexpr float kLog2E = 1.44269504088896341f;

// 2^x is computed as p * 2^n, where n is x rounded. Below this, n would be less than -126, whose
// power is no normal number, and the result is 0.
inline constexpr float kLowestPower = -126.5f;

// Valid for x up to about 0; exactly 0 below kLowestPower and where x is not a number. The
// polynomial comes from the Cephes library.
template <typename Simd>
typename Simd::Vector power_of_two(typename Simd::Vector x) {
    using Vector = typename Simd::Vector;
    constexpr float kZeroPower = -127.0f;
    const Vector clamped = Simd::kHasMasks ? x : Simd::max(x, Simd::broadcast(kZeroPower));
    const Vector whole = Simd::round(clamped);
    const Vector rest = Simd::subtract(clamped, whole);
    Vector p = Simd::broadcast(1.535336188319500e-4f);
    for (const float coefficient :
         {1.339887440266574e-3f, 9.618437357674640e-3f, 5.550332471162809e-2f,
          2.402264791363012e-1f, 6.931472028550421e-1f, 1.0f}) {
        p = Simd::fmadd(p, rest, Simd::broadcast(coefficient));
    }
    const Vector power = Simd::times_power_of_two(p, whole);
    return Simd::kHasMasks
               ? Simd::select_at_least(x, Simd::broadcast(kLowestPower), power, Simd::zero())
               : power;
}

}  // namespace
}  // namespace knap

// e^x on vectors, for kernels that are written over a vector type.
#pragma once

namespace knap {
namespace {

// For x <= 0; exactly 0 below -87 (the constants are those of the Cephes library).
template <typename Simd>
typename Simd::Vector exponential(typename Simd::Vector x) {
    using Vector = typename Simd::Vector;
    const Vector lowest = Simd::broadcast(-87.0f);
    const Vector clamped = Simd::max(x, lowest);
    const Vector n = Simd::round(Simd::multiply(clamped, Simd::broadcast(1.44269504088896341f)));
    Vector r = Simd::fmadd(n, Simd::broadcast(-0.693359375f), clamped);
    r = Simd::fmadd(n, Simd::broadcast(2.12194440e-4f), r);
    Vector p = Simd::broadcast(1.9875691500e-4f);
    for (const float coefficient : {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f,
                                    1.6666665459e-1f, 5.0000001201e-1f}) {
        p = Simd::fmadd(p, r, Simd::broadcast(coefficient));
    }
    p = Simd::fmadd(p, Simd::multiply(r, r), Simd::add(r, Simd::broadcast(1.0f)));
    return Simd::select_at_least(x, lowest, Simd::multiply(p, Simd::pow2(n)), Simd::zero());
}

}  // namespace
}  // namespace knap

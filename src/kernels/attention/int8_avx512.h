// Sixteen lanes: AVX-512 with VNNI. Only for files compiled with these instructions.
#pragma once

#include <cstdint>

#include <immintrin.h>

#include "kernels/simd_avx512.h"

namespace knap {
namespace {

struct Avx512Int8 {
    using Small = std::uint8_t;  // bytes, signed or unsigned
    using Quads = __m512i;
    using Sums = __m512i;
    static constexpr int kOtherRegisters = 1;

    template <typename Run>
    [[gnu::always_inline]] static void for_each_part(Run run) {
        run.template operator()<0>();
    }
    static void store(Small* p, __m512 x) {
        Avx512Simd::store_bytes(reinterpret_cast<std::int8_t*>(p), Avx512Simd::round_to_ints(x));
    }
    static Sums zero() { return Avx512Simd::zero_ints(); }
    template <int Part>
    static Quads load_keys(const std::uint8_t* p) {
        return _mm512_loadu_si512(p);
    }
    template <int Part>
    static Quads load_values(const std::int8_t* p) {
        return _mm512_loadu_si512(p);
    }
    template <int Part>
    static Quads broadcast(const Small* p) {
        return Avx512Simd::broadcast_quad(reinterpret_cast<const std::int8_t*>(p));
    }
    static Sums add_keys(Sums sums, Quads keys, Quads query) {
        return Avx512Simd::dot(sums, keys, query);
    }
    static Sums add_values(Sums sums, Quads values, Quads weights) {
        return Avx512Simd::dot(sums, weights, values);
    }
    static __m512 to_floats(Sums sums) { return Avx512Simd::to_floats(sums); }
};

}  // namespace
}  // namespace knap

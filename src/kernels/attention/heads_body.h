// The kernels for heads, as templates over a vector type (see simd_plain.h). Each instruction set
// includes this header in its own file. Channels past the last full vector are computed one by one,
// with the same bits. All round where ggml's vectorised rotation does: the second product, then the
// sum.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/attention/attention.h"
#include "kernels/attention/heads.h"

namespace knap {
namespace {

template <typename Simd>
class HeadsBody {
  public:
    static void rotate_neighbours(
        int head_dim, int n_rot, const float* turns, const float* x, float* out) {
        int i = 0;
        if constexpr (kWidth > 1) {
            for (; i + kWidth <= n_rot; i += kWidth) {
                Simd::store(out + i,
                            Simd::rotate_neighbours(Simd::load(x + i), Simd::load(turns + i)));
            }
        }
        for (; i < n_rot; i += 2) {
            out[i] = std::fma(x[i], turns[i], -(x[i + 1] * turns[i + 1]));
            out[i + 1] = std::fma(x[i], turns[i + 1], x[i + 1] * turns[i]);
        }
        std::copy(x + n_rot, x + head_dim, out + n_rot);
    }

    static void rotate_halves(
        int head_dim, int n_rot, const float* turns, const float* x, float* out) {
        const int half = n_rot / 2;
        int i = 0;
        for (; i + kWidth <= half; i += kWidth) {
            const Vector a = Simd::load(x + i);
            const Vector b = Simd::load(x + half + i);
            const Vector cosine = Simd::load(turns + i);
            const Vector sine = Simd::load(turns + half + i);
            Simd::store(out + i, Simd::fmsub(a, cosine, Simd::multiply(b, sine)));
            Simd::store(out + half + i, Simd::fmadd(a, sine, Simd::multiply(b, cosine)));
        }
        for (; i < half; ++i) {
            out[i] = std::fma(x[i], turns[i], -(x[half + i] * turns[half + i]));
            out[half + i] = std::fma(x[i], turns[half + i], x[half + i] * turns[i]);
        }
        std::copy(x + n_rot, x + head_dim, out + n_rot);
    }

    static void store_value(int head_dim, const float* x, std::uint16_t* out) {
        for (int d = 0; d < head_dim; d += kWidth) {
            Simd::store_half(out + d, Simd::load(x + d));
        }
    }

    static void store_key(int head_dim, const float* x, int lane, std::uint16_t* tile) {
        std::uint16_t halves[kKeyTile];
        for (int d = 0; d < head_dim; d += kKeyTile) {
            store_value(kKeyTile, x + d, halves);
            for (int i = 0; i < kKeyTile; ++i) {
                tile[(d + i) * kKeyTile + lane] = halves[i];
            }
        }
    }

    static std::uint16_t store_int8_key(int head_dim,
                                        const float* x,
                                        int lane,
                                        std::uint8_t* tile) {
        std::int8_t whole[kMaxAttentionHeadDim];
        const std::uint16_t scale = round_to_int8(head_dim, x, whole);
        for (int d = 0; d < head_dim; ++d) {
            const int quad = d / 4 * 4;
            tile[quad * kKeyTile + lane * 4 + d - quad] =
                static_cast<std::uint8_t>(whole[d] + kKeyOffset);
        }
        return scale;
    }

    static std::uint16_t store_int8_value(int head_dim,
                                          const float* x,
                                          int lane,
                                          std::int8_t* tile) {
        std::int8_t whole[kMaxAttentionHeadDim];
        const std::uint16_t scale = round_to_int8(head_dim, x, whole);
        for (int d = 0; d < head_dim; ++d) {
            tile[d * kValueTile + lane] = whole[d];
        }
        return scale;
    }

  private:
    // Rounds `x` to int8 and returns the scale as f16 bits.
    static std::uint16_t round_to_int8(int head_dim, const float* x, std::int8_t* out) {
        constexpr float kMostHalf = 65504.0f;
        Vector highest = Simd::zero();
        for (int d = 0; d < head_dim; d += kWidth) {
            highest = Simd::max(highest, Simd::abs(Simd::load(x + d)));
        }
        std::uint16_t halves[kWidth];
        Simd::store_half(
            halves, Simd::broadcast(std::min(Simd::reduce_max(highest) / kMostInt8, kMostHalf)));
        const float scale = Simd::reduce_max(Simd::load_half(halves));
        const Vector inverse = Simd::broadcast(scale > 0.0f ? 1.0f / scale : 0.0f);
        float whole[kMaxAttentionHeadDim];
        for (int d = 0; d < head_dim; d += kWidth) {
            Simd::store(whole + d, Simd::round(Simd::multiply(Simd::load(x + d), inverse)));
        }
        // Out of range only when the scale is too small or too large for half precision.
        for (int d = 0; d < head_dim; ++d) {
            out[d] = static_cast<std::int8_t>(std::clamp(whole[d], -kMostInt8, kMostInt8));
        }
        return halves[0];
    }

    using Vector = typename Simd::Vector;
    static constexpr int kWidth = Simd::kWidth;
};

template <typename Simd>
constexpr HeadsKernel heads_kernel(Isa isa) {
    using Body = HeadsBody<Simd>;
    return {.isa = isa,
            .rotate_neighbours = Body::rotate_neighbours,
            .rotate_halves = Body::rotate_halves,
            .store_key = Body::store_key,
            .store_value = Body::store_value,
            .store_int8_key = Body::store_int8_key,
            .store_int8_value = Body::store_int8_value};
}

}  // namespace
}  // namespace knap

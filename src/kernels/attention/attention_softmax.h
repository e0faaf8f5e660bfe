// The softmax of attention, as a template over a vector type (see simd_plain.h): scores become
// weights, chunk by chunk, and partial results of chunks are merged.
//
// Every instruction set adds weights in the same order, that of sixteen lanes, whatever its vectors
// hold. Lane i of 64 positions has those at i, i + 16, i + 32 and i + 48, added as (a + b) + (c +
// d) and then to the lane's sum. In the end the lanes are added in halves.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "kernels/attention/attention.h"
#include "kernels/power_of_two.h"

namespace knap {
namespace {

template <typename Simd>
class AttentionSoftmax {
  public:
    using Vector = typename Simd::Vector;
    static constexpr int kWidth = Simd::kWidth;
    static constexpr int kSumLanes = 16;
    static constexpr int kParts = kSumLanes / kWidth;  // vectors that the lanes take
    static constexpr int kStride = 4;                  // vectors at once, so that latencies overlap
    static_assert(kAttentionStep == kStride * kSumLanes);

    // Turns the scores of columns [first, first + Columns) into weights 2^(scale * score -
    // maximum), or of the capped score, and stores the maximum and the sum of weights in their
    // partial results. Calls take(c, position, weights) with kStride vectors of weights of column
    // `first + c`, those from `position` on and every kSumLanes positions further. All maxima come
    // first, so that no column waits for its own.
    template <int Columns, typename Take>
    static void run(const AttentionChunk& chunk,
                    int first,
                    const float (&scales)[Columns],
                    float (&scores)[Columns][kAttentionChunk],
                    Take take) {
        if (chunk.soft_cap > 0) {
            float capped[Columns];
            for (int c = 0; c < Columns; ++c) {
                cap(chunk, scales[c] / kLog2E, scores[c]);
                capped[c] = chunk.soft_cap * kLog2E;
            }
            weigh(chunk, first, capped, scores, take);
        } else {
            weigh(chunk, first, scales, scores, take);
        }
    }

    static void merge(int head_dim, float* state, const float* partial) {
        const float state_max = state[head_dim];
        const float partial_max = partial[head_dim];
        if (partial_max == kNothing) {
            return;
        }
        // The side with the higher maximum keeps its scale. The C library's exp2 is another one on
        // another machine.
        const Vector one = Simd::broadcast(1.0f);
        const Vector less =
            power_of_two<Simd>(Simd::broadcast(-std::fabs(state_max - partial_max)));
        const bool is_higher = partial_max > state_max;
        const Vector keeps = is_higher ? less : one;  // 0 while the state is empty
        const Vector takes = is_higher ? one : less;
        for (int d = 0; d < head_dim; d += kWidth) {
            const Vector kept = Simd::multiply(Simd::load(state + d), keeps);
            Simd::store(state + d, Simd::fmadd(Simd::load(partial + d), takes, kept));
        }
        state[head_dim] = std::max(state_max, partial_max);
        const float keep = Simd::reduce_max(keeps);
        const float take = Simd::reduce_max(takes);
        state[head_dim + 1] = state[head_dim + 1] * keep + partial[head_dim + 1] * take;
    }

  private:
    static constexpr float kNothing = -std::numeric_limits<float>::infinity();
    static constexpr int kPiece = kStride * kWidth;

    // tanh(scale * score / soft cap), from a power that cannot overflow.
    static void cap(const AttentionChunk& chunk, float scale, float* scores) {
        const Vector factor = Simd::broadcast(scale / chunk.soft_cap);
        const Vector one = Simd::broadcast(1.0f);
        for (int i = 0; i < chunk.n_positions; i += kWidth) {
            const Vector x = Simd::multiply(Simd::load(scores + i), factor);
            const Vector power =
                power_of_two<Simd>(Simd::multiply(Simd::abs(x), Simd::broadcast(-2 * kLog2E)));
            const Vector size = Simd::divide(Simd::subtract(one, power), Simd::add(one, power));
            const Vector negative = Simd::subtract(Simd::zero(), size);
            Simd::store(scores + i, Simd::select_at_least(x, Simd::zero(), size, negative));
        }
    }

    template <int Columns, typename Take>
    static void weigh(const AttentionChunk& chunk,
                      int first,
                      const float (&scales)[Columns],
                      float (&scores)[Columns][kAttentionChunk],
                      Take take) {
        float highest[Columns];
        for (int c = 0; c < Columns; ++c) {
            highest[c] = hide(chunk, first + c, scores[c]);
        }
        for (int c = 0; c < Columns; ++c) {
            const float maximum = highest[c] * scales[c];
            // A column that attends to nothing here has no maximum; any finite offset gives it zero
            // weights.
            const Vector offset = Simd::broadcast(highest[c] == kNothing ? 0.0f : maximum);
            const Vector scale = Simd::broadcast(scales[c]);
            Vector sums[kParts];
#pragma GCC unroll 4
            for (Vector& sum : sums) {
                sum = Simd::zero();
            }
            for (int i = 0; i < chunk.n_positions; i += kAttentionStep) {
#pragma GCC unroll 4
                for (int part = 0; part < kParts; ++part) {
                    const int position = i + part * kWidth;
                    Vector weights[kStride];
#pragma GCC unroll 4
                    for (int j = 0; j < kStride; ++j) {
                        const Vector score = Simd::load(scores[c] + position + j * kSumLanes);
                        weights[j] = power_of_two<Simd>(Simd::fmsub(score, scale, offset));
                    }
                    sums[part] =
                        Simd::add(sums[part], Simd::add(Simd::add(weights[0], weights[1]),
                                                        Simd::add(weights[2], weights[3])));
                    take(c, position, weights);
                }
            }
            float* partial = chunk.partials[first + c] + chunk.head_dim;
            partial[0] = maximum;
            partial[1] = sum_of_lanes(sums);
        }
    }

    static float sum_of_lanes(Vector (&sums)[kParts]) {
#pragma GCC unroll 4
        for (int half = kParts / 2; half > 0; half /= 2) {
#pragma GCC unroll 4
            for (int part = 0; part < half; ++part) {
                sums[part] = Simd::add(sums[part], sums[part + half]);
            }
        }
        return Simd::reduce_add(sums[0]);
    }

    // Sets the scores of hidden positions to -infinity. Returns the highest of the others.
    static float hide(const AttentionChunk& chunk, int column, float* scores) {
        const std::uint16_t* mask = chunk.masks[column];
        const int n_visible = visible_prefix(chunk, column);
        Vector highest[kStride];
#pragma GCC unroll 4
        for (Vector& one : highest) {
            one = Simd::broadcast(kNothing);
        }
        int i = 0;
        for (; i + kPiece <= n_visible; i += kPiece) {
#pragma GCC unroll 4
            for (int j = 0; j < kStride; ++j) {
                const Vector score = Simd::load(scores + i + std::ptrdiff_t{j} * kWidth);
                highest[j] = Simd::max(highest[j], score);
            }
        }
        for (; i < chunk.n_positions; i += kPiece) {
#pragma GCC unroll 4
            for (int j = 0; j < kStride; ++j) {
                const std::ptrdiff_t at = i + std::ptrdiff_t{j} * kWidth;
                const Vector score = Simd::add(Simd::load(scores + at), Simd::load_half(mask + at));
                Simd::store(scores + at, score);
                highest[j] = Simd::max(highest[j], score);
            }
        }
        return Simd::reduce_max(
            Simd::max(Simd::max(highest[0], highest[1]), Simd::max(highest[2], highest[3])));
    }

    // Leading positions that the column sees; at most as many as it does.
    static int visible_prefix(const AttentionChunk& chunk, int column) {
        if (chunk.n_visible != nullptr && chunk.n_visible[column] != kUnknownPrefix) {
            return chunk.n_visible[column];
        }
        return any_bit(chunk.masks[column], chunk.n_positions) ? 0 : chunk.n_positions;
    }

    static bool any_bit(const std::uint16_t* numbers, int n) {
        unsigned bits = 0;
        for (int i = 0; i < n; ++i) {
            bits |= numbers[i];
        }
        return bits != 0;
    }
};

}  // namespace
}  // namespace knap

// The attention kernel, written once over a vector type. Each instruction set includes this in a
// file of its own, compiled for it; everything is in an unnamed namespace so that no two of them
// share code.
//
// A Simd type gives: Vector, kWidth (divides kKeyTile), kRegisters; zero, broadcast, load, store,
// load_half, add, multiply, fmadd(a, b, c) = a b + c, max, round, pow2 (of whole numbers),
// keep_if_at_least(x, bound, value) = x >= bound ? value : 0, reduce_max, reduce_add.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/attention.h"

namespace knap {
namespace {

template <typename Simd>
class AttentionBody {
  public:
    static void run_chunk(const AttentionChunk& chunk) {
        int first = 0;
        for (; first + kTile <= chunk.n_columns; first += kTile) {
            run_columns<kTile>(chunk, first);
        }
        run_rest<kTile - 1>(chunk, first);
    }

    static void merge(int head_dim, float* state, const float* partial) {
        const float partial_max = partial[head_dim];
        if (partial_max == -std::numeric_limits<float>::infinity()) {
            return;
        }
        const float max = std::max(state[head_dim], partial_max);
        const float keep = std::exp(state[head_dim] - max);  // 0 while the state is empty
        const float take = std::exp(partial_max - max);
        const Vector keeps = Simd::broadcast(keep);
        const Vector takes = Simd::broadcast(take);
        for (int d = 0; d < head_dim; d += kWidth) {
            const Vector kept = Simd::multiply(Simd::load(state + d), keeps);
            Simd::store(state + d, Simd::fmadd(Simd::load(partial + d), takes, kept));
        }
        state[head_dim] = max;
        state[head_dim + 1] = state[head_dim + 1] * keep + partial[head_dim + 1] * take;
    }

  private:
    using Vector = typename Simd::Vector;
    static constexpr int kWidth = Simd::kWidth;
    static constexpr int kTile = 6;  // columns at once

    // Vectors per column such that the accumulators of `Columns` columns fit the registers.
    template <int Columns>
    static constexpr int vectors_per_column() {
        constexpr int kFit = Simd::kRegisters * 3 / 4 / Columns;
        return kFit >= 4 ? 4 : kFit >= 2 ? 2 : 1;
    }

    template <int Columns>
    static void run_rest(const AttentionChunk& chunk, int first) {
        if constexpr (Columns > 0) {
            if (chunk.n_columns - first == Columns) {
                run_columns<Columns>(chunk, first);
            } else {
                run_rest<Columns - 1>(chunk, first);
            }
        }
    }

    template <int Columns>
    static void run_columns(const AttentionChunk& chunk, int first) {
        alignas(64) float weights[Columns * kAttentionChunk];
        constexpr int kVectors = vectors_per_column<Columns>();
        for (int position = 0; position < chunk.n_positions; position += kVectors * kWidth) {
            score<Columns, kVectors>(chunk, first, position, weights);
        }
        for (int c = 0; c < Columns; ++c) {
            soften(chunk, first + c, weights + c * kAttentionChunk);
        }
        int channel = 0;
        for (; channel + kVectors * kWidth <= chunk.head_dim; channel += kVectors * kWidth) {
            weigh<Columns, kVectors>(chunk, first, channel, weights);
        }
        for (; channel < chunk.head_dim; channel += kWidth) {
            weigh<Columns, 1>(chunk, first, channel, weights);
        }
    }

    // Scores of `Vectors` vectors of positions from `position` on: lanes are positions.
    template <int Columns, int Vectors>
    static void score(const AttentionChunk& chunk, int first, int position, float* scores) {
        const std::uint16_t* keys[Vectors];
        Vector sums[Columns][Vectors];
        for (int v = 0; v < Vectors; ++v) {
            const int at = position + v * kWidth;
            keys[v] = chunk.keys +
                      static_cast<std::ptrdiff_t>(at / kKeyTile) * kKeyTile * chunk.head_dim +
                      at % kKeyTile;
            for (int c = 0; c < Columns; ++c) {
                sums[c][v] = Simd::zero();
            }
        }
        for (int d = 0; d < chunk.head_dim; ++d) {
            for (int v = 0; v < Vectors; ++v) {
                const Vector key = Simd::load_half(keys[v] + d * kKeyTile);
                for (int c = 0; c < Columns; ++c) {
                    sums[c][v] =
                        Simd::fmadd(Simd::broadcast(chunk.queries[first + c][d]), key, sums[c][v]);
                }
            }
        }
        for (int c = 0; c < Columns; ++c) {
            for (int v = 0; v < Vectors; ++v) {
                const std::ptrdiff_t at = c * kAttentionChunk + position + v * kWidth;
                Simd::store(scores + at, sums[c][v]);
            }
        }
    }

    // Turns a column's scores into weights exp(score - maximum), and notes maximum and sum in its
    // partial result.
    static void soften(const AttentionChunk& chunk, int column, float* scores) {
        const Vector scale = Simd::broadcast(chunk.scale);
        Vector highest = Simd::broadcast(-std::numeric_limits<float>::infinity());
        for (int i = 0; i < chunk.n_positions; i += kWidth) {
            const Vector mask = Simd::load_half(chunk.masks[column] + i);
            const Vector score = Simd::add(Simd::multiply(Simd::load(scores + i), scale), mask);
            Simd::store(scores + i, score);
            highest = Simd::max(highest, score);
        }
        const float max = Simd::reduce_max(highest);
        float* partial = chunk.partials[column];
        partial[chunk.head_dim] = max;
        // A column that sees nothing here has no maximum; any finite one makes all its weights 0.
        const Vector offset =
            Simd::broadcast(max == -std::numeric_limits<float>::infinity() ? 0.0f : -max);
        Vector sum = Simd::zero();
        for (int i = 0; i < chunk.n_positions; i += kWidth) {
            const Vector weight = exponential(Simd::add(Simd::load(scores + i), offset));
            Simd::store(scores + i, weight);
            sum = Simd::add(sum, weight);
        }
        partial[chunk.head_dim + 1] = Simd::reduce_add(sum);
    }

    // Weighted values of `Vectors` vectors of channels from `channel` on: lanes are channels.
    template <int Columns, int Vectors>
    static void weigh(const AttentionChunk& chunk, int first, int channel, const float* weights) {
        Vector sums[Columns][Vectors];
        for (int c = 0; c < Columns; ++c) {
            for (int v = 0; v < Vectors; ++v) {
                sums[c][v] = Simd::zero();
            }
        }
        const std::uint16_t* values = chunk.values + channel;
        for (int position = 0; position < chunk.n_positions; ++position, values += chunk.head_dim) {
            for (int v = 0; v < Vectors; ++v) {
                const Vector value = Simd::load_half(values + std::ptrdiff_t{v} * kWidth);
                for (int c = 0; c < Columns; ++c) {
                    sums[c][v] =
                        Simd::fmadd(Simd::broadcast(weights[c * kAttentionChunk + position]), value,
                                    sums[c][v]);
                }
            }
        }
        for (int c = 0; c < Columns; ++c) {
            for (int v = 0; v < Vectors; ++v) {
                const std::ptrdiff_t at = channel + v * kWidth;
                Simd::store(chunk.partials[first + c] + at, sums[c][v]);
            }
        }
    }

    // e^x for x <= 0, exactly 0 below -87 (the constants are those of the Cephes library).
    static Vector exponential(Vector x) {
        constexpr float kLowest = -87.0f;
        const Vector clamped = Simd::max(x, Simd::broadcast(kLowest));
        const Vector n =
            Simd::round(Simd::multiply(clamped, Simd::broadcast(1.44269504088896341f)));
        Vector r = Simd::fmadd(n, Simd::broadcast(-0.693359375f), clamped);
        r = Simd::fmadd(n, Simd::broadcast(2.12194440e-4f), r);
        Vector p = Simd::broadcast(1.9875691500e-4f);
        for (const float coefficient : {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f,
                                        1.6666665459e-1f, 5.0000001201e-1f}) {
            p = Simd::fmadd(p, r, Simd::broadcast(coefficient));
        }
        p = Simd::fmadd(p, Simd::multiply(r, r), Simd::add(r, Simd::broadcast(1.0f)));
        return Simd::keep_if_at_least(x, Simd::broadcast(kLowest),
                                      Simd::multiply(p, Simd::pow2(n)));
    }
};

}  // namespace
}  // namespace knap

// The attention kernel for an f16 cache, a template over a vector type (see simd_plain.h). Each
// instruction set includes this header in its own file, compiled for it. Everything is in an
// unnamed namespace so that no two of those files share code.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/rounding.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/attention_parts.h"
#include "kernels/attention/attention_softmax.h"

namespace knap {
namespace {

template <typename Simd>
class AttentionBody {
  public:
    static void run_chunk(const AttentionChunk& chunk, const HalfRows& rows) {
        for_each_group(chunk.n_columns,
                       [&]<int Columns>(int first) { run_columns<Columns>(chunk, rows, first); });
    }

  private:
    using Vector = typename Simd::Vector;
    using Softmax = AttentionSoftmax<Simd>;
    static constexpr int kWidth = Simd::kWidth;

    template <int Columns>
    static void run_columns(const AttentionChunk& chunk, const HalfRows& rows, int first) {
        constexpr int kVectors = vectors_per_column<Columns, Simd::kRegisters, 1>();
        constexpr int kLanes = kVectors * kWidth;
        const int n_seen = count_seen(chunk, first, Columns);
        const int n_score_steps = steps_for(n_seen, kLanes) * chunk.head_dim;
        const int n_weigh_steps = chunk.head_dim / kLanes * n_seen;
        ReadAhead<1> ahead(chunk, rows.next, first, Columns, n_score_steps + n_weigh_steps);
        alignas(64) float weights[Columns][kAttentionChunk];
        score_seen<Columns, kVectors, kWidth>(n_seen, weights, [&]<int Vectors>(int position) {
            score<Columns, Vectors>(chunk, rows, first, position, ahead, weights);
            ahead.skip(chunk.head_dim);
        });
        float scales[Columns];
        std::fill_n(scales, Columns, chunk.scale * kLog2E);
        Softmax::template run<Columns>(
            shortened(chunk, n_seen), first, scales, weights,
            [&](int c, int position, const Vector(&piece)[Softmax::kStride]) {
#pragma GCC unroll 4
                for (int j = 0; j < Softmax::kStride; ++j) {
                    Simd::store(weights[c] + position + j * Softmax::kSumLanes, piece[j]);
                }
            });
        int channel = 0;
        for (; channel + kLanes <= chunk.head_dim; channel += kLanes) {
            weigh<Columns, kVectors>(chunk, rows, first, n_seen, channel, ahead, weights);
            ahead.skip(n_seen);
        }
        for (; channel < chunk.head_dim; channel += kWidth) {
            weigh<Columns, 1>(chunk, rows, first, n_seen, channel, ahead, weights);
        }
    }

    template <int Vectors>
    [[gnu::always_inline]] static void store(const Vector (&vectors)[Vectors], float* out) {
#pragma GCC unroll 8
        for (int v = 0; v < Vectors; ++v) {
            Simd::store(out + std::ptrdiff_t{v} * kWidth, vectors[v]);
        }
    }
    template <int Columns, int Vectors>
    [[gnu::always_inline]] static void clear(Vector (&sums)[Columns][Vectors]) {
#pragma GCC unroll 8
        for (auto& column : sums) {
#pragma GCC unroll 8
            for (Vector& sum : column) {
                sum = Simd::zero();
            }
        }
    }

    // Scores of `Vectors` vectors of positions from `position` on. Lanes are positions.
    template <int Columns, int Vectors>
    [[gnu::noinline]] static void score(const AttentionChunk& chunk,
                                        const HalfRows& rows,
                                        int first,
                                        int position,
                                        ReadAhead<1> ahead,
                                        float (&scores)[Columns][kAttentionChunk]) {
        const std::uint16_t* keys[Vectors];
#pragma GCC unroll 8
        for (int v = 0; v < Vectors; ++v) {
            const int at = position + v * kWidth;
            const int in_tile = at % kKeyTile;
            keys[v] = rows.keys + std::ptrdiff_t{at - in_tile} * chunk.head_dim + in_tile;
        }
        const float* queries[Columns];
#pragma GCC unroll 8
        for (int c = 0; c < Columns; ++c) {
            queries[c] = chunk.queries[first + c];
        }
        Vector sums[Columns][Vectors];
        clear(sums);
        for (int d = 0; d < chunk.head_dim; ++d) {
            for_each_pair<Columns, Vectors>(
                [&](int c) { return Simd::broadcast(queries[c][d]); },
                [&](int v) { return Simd::load_half(keys[v] + std::ptrdiff_t{d} * kKeyTile); },
                [&](int c, int v, Vector query, Vector key) {
                    sums[c][v] = Simd::fmadd(query, key, sums[c][v]);
                });
            ahead.step();
        }
#pragma GCC unroll 8
        for (int c = 0; c < Columns; ++c) {
            store(sums[c], scores[c] + position);
        }
    }

    // Weighted values of `Vectors` vectors of channels from `channel` on. Lanes are channels. Zeros
    // that the other positions would add change no sum.
    template <int Columns, int Vectors>
    [[gnu::noinline]] static void weigh(const AttentionChunk& chunk,
                                        const HalfRows& rows,
                                        int first,
                                        int n_seen,
                                        int channel,
                                        ReadAhead<1> ahead,
                                        const float (&weights)[Columns][kAttentionChunk]) {
        const std::uint16_t* values = rows.values + channel;
        Vector sums[Columns][Vectors];
        clear(sums);
        for (int position = 0; position < n_seen; ++position) {
            for_each_pair<Columns, Vectors>(
                [&](int c) { return Simd::broadcast(weights[c][position]); },
                [&](int v) { return Simd::load_half(values + std::ptrdiff_t{v} * kWidth); },
                [&](int c, int v, Vector weight, Vector value) {
                    sums[c][v] = Simd::fmadd(weight, value, sums[c][v]);
                });
            values += chunk.head_dim;
            ahead.step();
        }
#pragma GCC unroll 8
        for (int c = 0; c < Columns; ++c) {
            store(sums[c], chunk.partials[first + c] + channel);
        }
    }
};

}  // namespace
}  // namespace knap

// The attention kernel for an int8 cache, a template over a vector type of floats (see
// simd_plain.h) and one of integers (see int8_plain.h). Queries and weights are rounded to eight
// bits, so both products are computed in integers. The scales of a column depend on that column
// only.
//
// Both products take four numbers at a time. Four channels of a key, or four positions of a value's
// channel, are adjacent in the cache and are multiplied by four numbers of a column.
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

template <typename Simd, typename Int8>
class Int8AttentionBody {
  public:
    static void run_chunk(const AttentionChunk& chunk, const Int8Rows& rows) {
        for_each_group(chunk.n_columns,
                       [&]<int Columns>(int first) { run_columns<Columns>(chunk, rows, first); });
    }

  private:
    using Vector = typename Simd::Vector;
    using Softmax = AttentionSoftmax<Simd>;
    using Small = typename Int8::Small;
    using Sums = typename Int8::Sums;
    using Quads = typename Int8::Quads;
    static constexpr int kWidth = Simd::kWidth;
    static constexpr int kQuad = 4;
    // Positions whose weights share a scale. A single large weight, such as that of the first
    // token, makes only its own block coarser.
    static constexpr int kBlock = kAttentionStep;
    static constexpr int kMaxBlocks = kAttentionChunk / kBlock;
    // Up to so many columns wait for the memory, so the next rows are prefetched during the softmax
    // too. With more columns, or narrower vectors, that costs more than it hides.
    static constexpr int kMemoryBoundColumns = kWidth < 16 ? 0 : 6;
    // Every line is prefetched about twice, because CPUs drop prefetches while the memory is busy.
    using Ahead = ReadAhead<(kWidth < 16 ? 2 : 4)>;

    // The rounded numbers of some columns, ready for the integer products.
    template <int Columns>
    struct Rounded {
        alignas(64) Small queries[Columns][kMaxAttentionHeadDim];
        alignas(64) Small weights[Columns][kAttentionChunk];
        float weight_scales[Columns][kMaxBlocks];
        float query_scales[Columns];
        float query_sums[Columns];  // of the rounded numbers, times kKeyOffset
    };

    template <int Columns>
    static void run_columns(const AttentionChunk& chunk, const Int8Rows& rows, int first) {
        constexpr int kVectors =
            vectors_per_column<Columns, Simd::kRegisters, Int8::kOtherRegisters>();
        constexpr int kLanes = kVectors * kWidth;
        const int n_seen = count_seen(chunk, first, Columns);
        const AttentionChunk seen = shortened(chunk, n_seen);
        const int n_quads = steps_for(n_seen, kQuad);
        const int n_score_steps = steps_for(n_seen, kLanes) * (chunk.head_dim / kQuad);
        const int n_weigh_steps = chunk.head_dim / kLanes * n_quads;
        const bool is_bound_by_memory = chunk.n_columns <= kMemoryBoundColumns;
        const int n_soften_steps = is_bound_by_memory ? seen.n_positions / kWidth * Columns : 0;
        Ahead ahead(chunk, rows.next, first, Columns,
                    n_score_steps + n_soften_steps + n_weigh_steps);
        Rounded<Columns> rounded;
        for (int c = 0; c < Columns; ++c) {
            round_query(chunk, first + c, c, rounded);
        }
        alignas(64) float scores[Columns][kAttentionChunk];
        score_seen<Columns, kVectors, kWidth>(n_seen, scores, [&]<int Vectors>(int position) {
            score<Columns, Vectors>(chunk, rows, position, rounded, ahead, scores);
            ahead.skip(chunk.head_dim / kQuad);
        });
        soften(seen, rows, first, is_bound_by_memory, scores, ahead, rounded);
        int channel = 0;
        for (; channel + kLanes <= chunk.head_dim; channel += kLanes) {
            weigh<Columns, kVectors>(chunk, rows, first, n_quads, channel, rounded, ahead);
            ahead.skip(n_quads);
        }
        for (; channel < chunk.head_dim; channel += kWidth) {
            weigh<Columns, 1>(chunk, rows, first, n_quads, channel, rounded, ahead);
        }
    }

    // The scale that maps `highest` to `most`, and its inverse. Both are 0, and all numbers round
    // to 0, when `highest` is too small to invert.
    struct Scale {
        Scale() = default;
        Scale(float highest, float most) {
            constexpr float kLowest = 1e-30f;
            if (highest > kLowest) {
                scale = highest / most;
                inverse = most / highest;
            }
        }
        float scale = 0.0f;
        float inverse = 0.0f;
    };

    template <typename Numbers>
    static void round_query(const AttentionChunk& chunk, int column, int c, Numbers& rounded) {
        const float* query = chunk.queries[column];
        Vector highest = Simd::zero();
        for (int d = 0; d < chunk.head_dim; d += kWidth) {
            const Vector x = Simd::load(query + d);
            highest = Simd::max(highest, Simd::max(x, Simd::subtract(Simd::zero(), x)));
        }
        const Scale scale(Simd::reduce_max(highest), kMostInt8);
        const Vector inverse = Simd::broadcast(scale.inverse);
        Vector sum = Simd::zero();
        for (int d = 0; d < chunk.head_dim; d += kWidth) {
            const Vector x = Simd::round(Simd::multiply(Simd::load(query + d), inverse));
            Int8::store(rounded.queries[c] + d, x);
            sum = Simd::add(sum, x);
        }
        rounded.query_scales[c] = scale.scale;
        rounded.query_sums[c] = Simd::reduce_add(sum) * kKeyOffset;
    }

    template <int Columns, int Vectors>
    [[gnu::always_inline]] static void clear(Sums (&sums)[Columns][Vectors]) {
#pragma GCC unroll 8
        for (auto& column : sums) {
#pragma GCC unroll 8
            for (Sums& sum : column) {
                sum = Int8::zero();
            }
        }
    }

    // Scores of `Vectors` vectors of positions from `position` on, without the query's scale. Lanes
    // are positions. All sums are integers that a float represents exactly.
    template <int Columns, int Vectors>
    [[gnu::noinline]] static void score(const AttentionChunk& chunk,
                                        const Int8Rows& rows,
                                        int position,
                                        const Rounded<Columns>& rounded,
                                        Ahead ahead,
                                        float (&scores)[Columns][kAttentionChunk]) {
        const std::uint8_t* keys[Vectors];
#pragma GCC unroll 8
        for (int v = 0; v < Vectors; ++v) {
            const int at = position + v * kWidth;
            const int in_tile = at % kKeyTile;
            keys[v] = rows.keys + std::ptrdiff_t{at - in_tile} * chunk.head_dim +
                      std::ptrdiff_t{in_tile} * kQuad;
        }
        Sums sums[Columns][Vectors];
        clear(sums);
        for (int d = 0; d < chunk.head_dim; d += kQuad) {
            Int8::for_each_part([&]<int Part>() {
                for_each_pair<Columns, Vectors>(
                    [&](int c) { return Int8::template broadcast<Part>(rounded.queries[c] + d); },
                    [&](int v) {
                        return Int8::template load_keys<Part>(keys[v] +
                                                              std::ptrdiff_t{d} * kKeyTile);
                    },
                    [&](int c, int v, Quads query, Quads key) {
                        sums[c][v] = Int8::add_keys(sums[c][v], key, query);
                    });
            });
            ahead.step();
        }
#pragma GCC unroll 8
        for (int v = 0; v < Vectors; ++v) {
            const int at = position + v * kWidth;
            const Vector scale = Simd::load_half(rows.key_scales + at);
#pragma GCC unroll 8
            for (int c = 0; c < Columns; ++c) {
                const Vector offset = Simd::broadcast(rounded.query_sums[c]);
                const Vector sum = Simd::subtract(Int8::to_floats(sums[c][v]), offset);
                Simd::store(scores[c] + at, Simd::multiply(sum, scale));
            }
        }
    }

    // Turns scores into weights, multiplies them by their positions' value scales, and rounds them
    // to eight bits with one scale a block.
    template <int Columns>
    [[gnu::noinline]] static void soften(const AttentionChunk& chunk,
                                         const Int8Rows& rows,
                                         int first,
                                         bool is_bound_by_memory,
                                         float (&scores)[Columns][kAttentionChunk],
                                         Ahead& ahead,
                                         Rounded<Columns>& rounded) {
        alignas(64) float highest[Columns][kMaxBlocks][Softmax::kParts][kWidth];
        float scales[Columns];
        for (int c = 0; c < Columns; ++c) {
            scales[c] = chunk.scale * kLog2E * rounded.query_scales[c];
        }
        Softmax::template run<Columns>(
            chunk, first, scales, scores,
            [&](int c, int position, const Vector(&weights)[Softmax::kStride]) {
                Vector most = Simd::zero();
#pragma GCC unroll 4
                for (int j = 0; j < Softmax::kStride; ++j) {
                    const int at = position + j * Softmax::kSumLanes;
                    const Vector weight =
                        Simd::multiply(weights[j], Simd::load_half(rows.value_scales + at));
                    Simd::store(scores[c] + at, weight);
                    most = Simd::max(most, weight);
                    if (is_bound_by_memory) {
                        ahead.step();
                    }
                }
                Simd::store(highest[c][position / kBlock][position % kBlock / kWidth], most);
            });
        const int n_blocks = chunk.n_positions / kBlock;
        Scale block_scales[Columns][kMaxBlocks];
        for (int c = 0; c < Columns; ++c) {
            for (int block = 0; block < n_blocks; ++block) {
                Vector most = Simd::zero();
                for (const auto& part : highest[c][block]) {
                    most = Simd::max(most, Simd::load(part));
                }
                block_scales[c][block] = Scale(Simd::reduce_max(most), kMostUint8);
                rounded.weight_scales[c][block] = block_scales[c][block].scale;
            }
        }
        for (int c = 0; c < Columns; ++c) {
            for (int block = 0; block < n_blocks; ++block) {
                const Vector inverse = Simd::broadcast(block_scales[c][block].inverse);
                for (int i = block * kBlock; i < (block + 1) * kBlock; i += kWidth) {
                    Int8::store(rounded.weights[c] + i,
                                Simd::multiply(Simd::load(scores[c] + i), inverse));
                }
            }
        }
    }

    // Weighted values of `Vectors` vectors of channels from `channel` on. Lanes are channels. Zeros
    // that the quads behind `n_quads` would add change no sum.
    template <int Columns, int Vectors>
    [[gnu::noinline]] static void weigh(const AttentionChunk& chunk,
                                        const Int8Rows& rows,
                                        int first,
                                        int n_quads,
                                        int channel,
                                        const Rounded<Columns>& rounded,
                                        Ahead ahead) {
        const std::int8_t* values = rows.values + std::ptrdiff_t{channel} * kQuad;
        const int end = n_quads * kQuad;
        for (int block = 0; block * kBlock < end; ++block) {
            Sums sums[Columns][Vectors];
            clear(sums);
            for (int i = block * kBlock; i < std::min((block + 1) * kBlock, end); i += kQuad) {
                Int8::for_each_part([&]<int Part>() {
                    for_each_pair<Columns, Vectors>(
                        [&](int c) {
                            return Int8::template broadcast<Part>(rounded.weights[c] + i);
                        },
                        [&](int v) {
                            return Int8::template load_values<Part>(values + std::ptrdiff_t{v} *
                                                                                 kWidth * kQuad);
                        },
                        [&](int c, int v, Quads weight, Quads value) {
                            sums[c][v] = Int8::add_values(sums[c][v], value, weight);
                        });
                });
                values += std::ptrdiff_t{chunk.head_dim} * kQuad;
                ahead.step();
            }
#pragma GCC unroll 8
            for (int c = 0; c < Columns; ++c) {
                const Vector scale = Simd::broadcast(rounded.weight_scales[c][block]);
                float* out = chunk.partials[first + c] + channel;
#pragma GCC unroll 8
                for (int v = 0; v < Vectors; ++v) {
                    float* place = out + std::ptrdiff_t{v} * kWidth;
                    const Vector before = block == 0 ? Simd::zero() : Simd::load(place);
                    Simd::store(place, Simd::fmadd(Int8::to_floats(sums[c][v]), scale, before));
                }
            }
        }
    }
};

}  // namespace
}  // namespace knap

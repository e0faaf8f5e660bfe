// Products with packed matrices, as templates over a vector type (simd_*.h). Each instruction set
// includes this header in its own file, compiled for it. Everything is in an unnamed namespace so
// that no two of those files share code.
//
// A tile is two vectors of matrix rows times a few rows of the pass. Weights are unpacked once for
// all rows of the tile, and each broadcast of four inputs serves both vectors. While a tile
// computes, it prefetches its share of the weights that come next.
#pragma once

#include <algorithm>
#include <array>
#include <type_traits>

#include "base/error.h"
#include "kernels/matmul/ahead.h"
#include "kernels/matmul/matmul.h"
#include "kernels/matmul/panel_tiles.h"
#include "kernels/matmul/weight_codes.h"

namespace knap {
namespace {

template <typename Simd>
class MatmulBody {
  public:
    static void multiply(const Product& product) {
        switch (product.matrix->type) {
            case GGML_TYPE_Q4_0:
                return run<QuantisedTiles<GGML_TYPE_Q4_0>>(product);
            case GGML_TYPE_Q4_1:
                return run<QuantisedTiles<GGML_TYPE_Q4_1>>(product);
            case GGML_TYPE_Q5_0:
                return run<QuantisedTiles<GGML_TYPE_Q5_0>>(product);
            case GGML_TYPE_Q5_1:
                return run<QuantisedTiles<GGML_TYPE_Q5_1>>(product);
            case GGML_TYPE_Q8_0:
                return run<QuantisedTiles<GGML_TYPE_Q8_0>>(product);
            case GGML_TYPE_IQ4_NL:
                return run<QuantisedTiles<GGML_TYPE_IQ4_NL>>(product);
            case GGML_TYPE_MXFP4:
                return run<QuantisedTiles<GGML_TYPE_MXFP4>>(product);
            case GGML_TYPE_Q2_K:
                return run<QuantisedTiles<GGML_TYPE_Q2_K>>(product);
            case GGML_TYPE_Q3_K:
                return run<QuantisedTiles<GGML_TYPE_Q3_K>>(product);
            case GGML_TYPE_Q4_K:
                return run<QuantisedTiles<GGML_TYPE_Q4_K>>(product);
            case GGML_TYPE_Q5_K:
                return run<QuantisedTiles<GGML_TYPE_Q5_K>>(product);
            case GGML_TYPE_Q6_K:
                return run<QuantisedTiles<GGML_TYPE_Q6_K>>(product);
            case GGML_TYPE_IQ4_XS:
                return run<QuantisedTiles<GGML_TYPE_IQ4_XS>>(product);
            case GGML_TYPE_F16:
                return run<FloatTiles<GGML_TYPE_F16>>(product);
            case GGML_TYPE_BF16:
                return run<FloatTiles<GGML_TYPE_BF16>>(product);
            case GGML_TYPE_F32:
                return run<FloatTiles<GGML_TYPE_F32>>(product);
            default:
                KNAP_ASSERT(false, "the type has a packed layout");
        }
    }

  private:
    using Vector = typename Simd::Vector;
    using Ints = typename Simd::Ints;
    using Bytes = typename Simd::Bytes;
    static constexpr int kWidth = Simd::kWidth;
    static constexpr int kVectors = std::min(2, kGroupRows / kWidth);  // per tile
    static constexpr int kTileRows = kVectors * kWidth;                // matrix rows per tile

    template <typename Tiles>
    static void run(const Product& product) {
        if constexpr (Tiles::kHasPanels) {
            if (PanelTiles<Simd, Tiles::kType>::is_faster(product.n_rows)) {
                return PanelTiles<Simd, Tiles::kType>::run(product);
            }
        }
        const PackedMatrix& matrix = *product.matrix;
        const std::size_t n_bytes = group_bytes(matrix.type, matrix.n_in);
        // Takes as many rows at a time as keep their inputs in the CPU's cache while all groups
        // pass.
        constexpr std::size_t kNearBytes = 512 << 10;
        const std::size_t row_bytes = input_row_bytes(Tiles::kForm, matrix.n_in);
        const int n_near = std::max(Tiles::kColumns, static_cast<int>(kNearBytes / row_bytes) /
                                                         Tiles::kColumns * Tiles::kColumns);
        for (int first = 0; first < product.n_rows; first += n_near) {
            const int n_rows = std::min(n_near, product.n_rows - first);
            for (int i = 0; i < product.n_groups; ++i) {
                const int group = product.first_group + i;
                run_group<Tiles>(product, group,
                                 matrix.data + n_bytes * static_cast<std::size_t>(group), n_bytes,
                                 first, n_rows);
            }
        }
    }

    template <typename Tiles>
    static void run_group(const Product& product,
                          int group,
                          const std::byte* weights,
                          std::size_t n_bytes,
                          int first,
                          int n_rows) {
        constexpr int kTiles = kGroupRows / kTileRows;
        const int n_columns = (n_rows + Tiles::kColumns - 1) / Tiles::kColumns;  // of tiles
        const int n_passes = kTiles * n_columns;
        typename Tiles::Ahead ahead(
            weights, n_bytes, n_passes == 1 ? Tiles::Ahead::kNearest : n_bytes,
            n_passes * Tiles::count_steps(product.matrix->n_in), product.next_of(group));
        for (int tile = 0; tile < kTiles; ++tile) {
            int row = first;
            for (int left = n_columns; left > 0; --left) {
                const int n = (first + n_rows - row + left - 1) / left;  // of about the same size
                run_columns<Tiles, Tiles::kColumns>(product, group, tile, weights, row, n, ahead);
                row += n;
            }
        }
    }

    // `n` rows, at most `Columns`.
    template <typename Tiles, int Columns>
    static void run_columns(const Product& product,
                            int group,
                            int tile,
                            const std::byte* weights,
                            int row,
                            int n,
                            typename Tiles::Ahead& ahead) {
        if constexpr (Columns > 1) {
            if (n < Columns) {
                return run_columns<Tiles, Columns - 1>(product, group, tile, weights, row, n,
                                                       ahead);
            }
        }
        if constexpr (Tiles::kIsApart) {
            run_tile_apart<Tiles, Columns>(product, group, tile, weights, row, ahead);
        } else {
            run_tile<Tiles, Columns>(product, group, tile, weights, row, ahead);
        }
    }

    template <typename Tiles, int Columns>
    [[gnu::noinline]] static void run_tile_apart(const Product& product,
                                                 int group,
                                                 int tile,
                                                 const std::byte* weights,
                                                 int row,
                                                 typename Tiles::Ahead& ahead) {
        run_tile<Tiles, Columns>(product, group, tile, weights, row, ahead);
    }

    template <typename Tiles, int Columns>
    static void run_tile(const Product& product,
                         int group,
                         int tile,
                         const std::byte* weights,
                         int row,
                         typename Tiles::Ahead& ahead) {
        const PackedMatrix& matrix = *product.matrix;
        const std::byte* inputs = product.inputs + input_row_bytes(Tiles::kForm, matrix.n_in) *
                                                       static_cast<std::size_t>(row);
        Vector sums[Columns][kVectors];
        Tiles::template sum<Columns>(weights, tile * kTileRows, inputs, matrix.n_in, ahead, sums);
        const int first_out = group * kGroupRows + tile * kTileRows;
        const std::ptrdiff_t at = row * product.stride + first_out;
        const int n_out = std::min(kTileRows, matrix.n_out - first_out);
#pragma GCC unroll 8
        for (int c = 0; c < Columns; ++c) {
            const std::ptrdiff_t place = at + c * product.stride;
            put(sums[c], n_out, product.out + place,
                product.added != nullptr ? product.added + place : nullptr);
        }
    }

    // Inlined, because GCC 11 to 13 misalign vectors in memory under the address sanitizer (GCC bug
    // 110027).
    [[gnu::always_inline]] static void put(const Vector* sums,
                                           int n_out,
                                           float* out,
                                           const float* added) {
        if (n_out == kTileRows) {
#pragma GCC unroll 8
            for (int v = 0; v < kVectors; ++v) {
                Simd::store(out + v * kWidth,
                            added != nullptr ? Simd::add(Simd::load(added + v * kWidth), sums[v])
                                             : sums[v]);
            }
            return;
        }
        std::array<float, kTileRows> values;  // the last rows of a matrix may not fill a tile
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) {
            Simd::store(values.data() + v * kWidth, sums[v]);
        }
        for (int i = 0; i < n_out; ++i) {
            const float value = values[static_cast<std::size_t>(i)];
            out[i] = added != nullptr ? added[i] + value : value;
        }
    }

    template <ggml_type Type>
    struct QuantisedTiles {
        using Codes = WeightCodes<Simd, Type>;
        using Layout = UnitLayout<Type>;
        // For K types with six-bit scales the first cache measures better.
        using Ahead = knap::Ahead<Simd, Codes::kIsSuperBlock>;
        static constexpr ggml_type kType = Type;
        static constexpr InputForm kForm = InputForm::quantised;
        // Whether tiles are functions of their own. When weights come from memory, GCC's code for
        // one and two rows of Q6_K is faster apart (by 1.1 and 1.4 on Zen 4) and that for Q4_K
        // inlined (by 1.6).
        static constexpr bool kIsApart = Codes::kHalves == 2;
        // The types that panel_tiles.h knows; for wide vectors.
        static constexpr bool kHasPanels =
            kWidth >= 8 &&
            (Type == GGML_TYPE_Q4_0 || Type == GGML_TYPE_Q4_1 || Type == GGML_TYPE_Q5_0 ||
             Type == GGML_TYPE_Q8_0 || Type == GGML_TYPE_Q4_K || Type == GGML_TYPE_Q5_K ||
             Type == GGML_TYPE_Q6_K);
        // Float sums, integer dots, weights and the current inputs must fit in the registers.
        static constexpr int kColumns =
            Simd::kRegisters >= 32 ? (Codes::kHalves == 2 ? 4 : 6) : (Codes::kHalves == 2 ? 1 : 2);

        static int count_steps(int n_in) { return n_in / kQuantBlock; }

        template <int Columns>
        static void sum(const std::byte* unit,
                        int first_row,
                        const std::byte* inputs,
                        int n_in,
                        Ahead& ahead,
                        Vector (&sums)[Columns][kVectors]) {
            const int n_blocks = n_in / kQuantBlock;
            const auto* blocks = reinterpret_cast<const QuantisedBlock*>(inputs);
#pragma GCC unroll 8
            for (int c = 0; c < Columns; ++c) {
#pragma GCC unroll 8
                for (int v = 0; v < kVectors; ++v) {
                    sums[c][v] = Simd::zero();
                }
            }
            for (int i = 0; i < n_blocks; i += Layout::kBlocks) {
                for (int b = 0; b < Layout::kBlocks; ++b) {
                    ahead.fetch();
                    add_block<Columns>(unit, b, first_row, blocks + i + b, n_blocks, sums);
                }
                unit += Layout::kBytes;
            }
        }

        // `stride` is the distance in blocks from one row to the next.
        template <int Columns>
        [[gnu::always_inline]] static void add_block(const std::byte* unit,
                                                     int b,
                                                     int first_row,
                                                     const QuantisedBlock* blocks,
                                                     std::ptrdiff_t stride,
                                                     Vector (&sums)[Columns][kVectors]) {
            constexpr int kHalves = Codes::kHalves;
            Ints dots[Columns][kVectors][kHalves];
#pragma GCC unroll 8
            for (int c = 0; c < Columns; ++c) {
                start(blocks[c * stride], dots[c]);
            }
            add_quads<Columns, 0>(unit, b, first_row, blocks, stride, dots);
            add_quads<Columns, 1>(unit, b, first_row, blocks, stride, dots);
            add_quads<Columns, 2>(unit, b, first_row, blocks, stride, dots);
            add_quads<Columns, 3>(unit, b, first_row, blocks, stride, dots);
#pragma GCC unroll 8
            for (int v = 0; v < kVectors; ++v) {
                const int row = first_row + v * kWidth;
#pragma GCC unroll 8
                for (int half = 0; half < kHalves; ++half) {
                    const Vector scale = Codes::scale(unit, b, half, row);
#pragma GCC unroll 8
                    for (int c = 0; c < Columns; ++c) {
                        const Vector dot = Simd::multiply(Simd::to_floats(dots[c][v][half]), scale);
                        sums[c][v] =
                            Simd::fmadd(dot, Simd::broadcast(blocks[c * stride].scale), sums[c][v]);
                    }
                }
                if constexpr (Codes::kHasHalfMinima) {
                    add_half_minima<Columns>(unit, b, row, v, blocks, stride, sums);
                }
                if constexpr (Codes::kHasMinima) {
                    const Vector minimum = Codes::minimum(unit, b, row);
#pragma GCC unroll 8
                    for (int c = 0; c < Columns; ++c) {
                        sums[c][v] = Simd::fmadd(
                            minimum, Simd::broadcast(blocks[c * stride].scaled_sum), sums[c][v]);
                    }
                }
            }
        }

        template <int Columns>
        [[gnu::always_inline]] static void add_half_minima(const std::byte* unit,
                                                           int b,
                                                           int row,
                                                           int v,
                                                           const QuantisedBlock* blocks,
                                                           std::ptrdiff_t stride,
                                                           Vector (&sums)[Columns][kVectors]) {
#pragma GCC unroll 8
            for (int half = 0; half < Codes::kHalves; ++half) {
                const Vector minimum = Codes::half_minimum(unit, b, half, row);
#pragma GCC unroll 8
                for (int c = 0; c < Columns; ++c) {
                    const QuantisedBlock& block = blocks[c * stride];
                    const float less = block.scale * static_cast<float>(block.less[half]);
                    sums[c][v] = Simd::fmadd(minimum, Simd::broadcast(less), sums[c][v]);
                }
            }
        }

        // Subtracts the offset of the codes: dots start at -offset times the sum of the inputs.
        [[gnu::always_inline]] static void start(const QuantisedBlock& block,
                                                 Ints (&dots)[kVectors][Codes::kHalves]) {
#pragma GCC unroll 8
            for (int half = 0; half < Codes::kHalves; ++half) {
                Ints first = Simd::zero_ints();
                if constexpr (Codes::kOffsetBits > 0) {
                    const std::int32_t less =
                        Codes::kHalves == 2 ? block.less[half] : block.less_of_all();
                    first =
                        Simd::template shift_left<Codes::kOffsetBits>(Simd::broadcast_int(less));
                }
#pragma GCC unroll 8
                for (int v = 0; v < kVectors; ++v) {
                    dots[v][half] = first;
                }
            }
        }

        // Inputs 4 Quad .. 4 Quad + 3 of both halves of the block.
        template <int Columns, int Quad>
        [[gnu::always_inline]] static void add_quads(
            const std::byte* unit,
            int b,
            int first_row,
            const QuantisedBlock* blocks,
            std::ptrdiff_t stride,
            Ints (&dots)[Columns][kVectors][Codes::kHalves]) {
            typename Codes::Pair codes[kVectors];
#pragma GCC unroll 8
            for (int v = 0; v < kVectors; ++v) {
                codes[v] = Codes::template load<Quad>(unit, b, first_row + v * kWidth);
            }
#pragma GCC unroll 8
            for (int c = 0; c < Columns; ++c) {
                const std::int8_t* values = blocks[c * stride].values + 4 * Quad;
                Bytes first = Simd::broadcast_quad(values);
                Simd::pin(first);
                Bytes second = Simd::broadcast_quad(values + kQuantBlock / 2);
                Simd::pin(second);
#pragma GCC unroll 8
                for (int v = 0; v < kVectors; ++v) {
                    Codes::add(codes[v], first, second, dots[c][v]);
                }
            }
        }
    };

    template <ggml_type Type>
    struct FloatTiles {
        using Ahead = knap::Ahead<Simd, true>;
        static constexpr InputForm kForm = InputForm::floats;
        static constexpr bool kIsApart = false;
        static constexpr bool kHasPanels = false;
        static constexpr int kColumns = Simd::kRegisters >= 32 ? 8 : 4;

        static int count_steps(int n_in) { return n_in; }

        using Stored = std::conditional_t<Type == GGML_TYPE_F32, float, std::uint16_t>;

        static Vector load(const Stored* weights) {
            if constexpr (Type == GGML_TYPE_F32) {
                return Simd::load(weights);
            } else {
                return Type == GGML_TYPE_F16 ? Simd::load_half(weights)
                                             : Simd::load_bfloat(weights);
            }
        }

        template <int Columns>
        static void sum(const std::byte* group,
                        int first_row,
                        const std::byte* inputs,
                        int n_in,
                        Ahead& ahead,
                        Vector (&sums)[Columns][kVectors]) {
            const auto* weights = reinterpret_cast<const Stored*>(group) + first_row;
            const auto* x = reinterpret_cast<const float*>(inputs);
#pragma GCC unroll 8
            for (int c = 0; c < Columns; ++c) {
#pragma GCC unroll 8
                for (int v = 0; v < kVectors; ++v) {
                    sums[c][v] = Simd::zero();
                }
            }
            for (int i = 0; i < n_in; ++i, weights += kGroupRows) {
                ahead.fetch();
                Vector weight[kVectors];
#pragma GCC unroll 8
                for (int v = 0; v < kVectors; ++v) {
                    weight[v] = load(weights + v * kWidth);
                }
#pragma GCC unroll 8
                for (int c = 0; c < Columns; ++c) {
                    Vector input = Simd::broadcast(x[std::ptrdiff_t{c} * n_in + i]);
                    Simd::pin(input);
#pragma GCC unroll 8
                    for (int v = 0; v < kVectors; ++v) {
                        sums[c][v] = Simd::fmadd(weight[v], input, sums[c][v]);
                    }
                }
            }
        }
    };
};

}  // namespace
}  // namespace knap

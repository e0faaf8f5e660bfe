// Products of quantised matrices and many rows with tile registers, with the bits of the tiles in
// matmul_body.h. `Tiles` multiplies 16 rows of the pass by 16 rows of a matrix, over 32 inputs, in
// integers (see amx_tiles.h); vectors scale these sums and add them in input order.
//
// The rows of the pass are packed once, 16 at a time. Of a matrix, 16 rows and some blocks are
// unpacked at a time and meet all packed rows before the next ones come.
#pragma once

#include <algorithm>
#include <cstring>

#include "kernels/matmul/matmul.h"
#include "kernels/matmul/weight_codes.h"

namespace knap {
namespace {

template <typename Simd, typename Tiles, ggml_type Type>
class TileProducts {
  public:
    using Codes = WeightCodes<Simd, Type>;
    static_assert(Codes::kHalves == 1 && !Codes::kHasHalfMinima, "a scale for every 32 inputs");

    // Whether there is room for the rows: the others are for the tiles of matmul_body.h.
    static bool takes(const Product& product) {
        return product.matrix->n_in / kQuantBlock <= kMaxBlocks;
    }

    static void run(const Product& product) {
        const int n_blocks = product.matrix->n_in / kQuantBlock;
        const int n_near = std::clamp(kMaxBlocks / n_blocks, 1, kMaxChunks) * kRows;
        const auto* inputs = reinterpret_cast<const QuantisedBlock*>(product.inputs);
        const Tiles tiles;
        PackedBlock packed[kMaxBlocks];
        for (int first = 0; first < product.n_rows; first += n_near) {
            const int n_rows = std::min(n_near, product.n_rows - first);
            pack(inputs + std::ptrdiff_t{first} * n_blocks, n_rows, n_blocks, packed);
            for (int i = 0; i < product.n_groups; ++i) {
                for (int row = 0; row < kGroupRows; row += kRows) {
                    run_rows(product, product.first_group + i, row, first, n_rows, packed);
                }
            }
        }
    }

  private:
    using Layout = UnitLayout<Type>;
    using Vector = typename Simd::Vector;
    using Ints = typename Simd::Ints;
    static constexpr int kRows = 16;  // of the pass, and of the matrix, in a tile
    static constexpr int kWidth = Simd::kWidth;
    static constexpr int kVectors = kRows / kWidth;
    static constexpr int kMaxChunks = 4;    // of 16 rows of the pass
    static constexpr int kMaxBlocks = 512;  // of all chunks: they stay in a core's second cache
    static constexpr int kPanel = 32;       // unpacked blocks, for the first cache
    static_assert(kPanel % Layout::kBlocks == 0);

    // 32 inputs of 16 rows.
    struct alignas(64) PackedBlock {
        std::int8_t values[kRows][kQuantBlock];
        float scales[kRows];
        float scaled_sums[kRows];
        std::int32_t starts[kRows];  // minus the offset of the codes, times the sum of the values
    };

    // Blocks of 16 rows of the matrix.
    struct Panel {
        alignas(64) std::byte quads[kPanel][kQuantBlock / 4][kRows][4];
        alignas(64) float scales[kPanel][kRows];
        alignas(64) float minima[kPanel][kRows];
    };

    struct alignas(64) Sums {
        float values[kRows][kRows];  // [row of the pass][row of the matrix]
    };
    struct alignas(64) Dots {
        std::int32_t values[kRows][kRows];
    };

    // [chunk][block]; rows that are missing in the last chunk are zeros.
    static void pack(const QuantisedBlock* inputs, int n_rows, int n_blocks, PackedBlock* packed) {
        for (int first = 0; first < n_rows; first += kRows) {
            for (int i = 0; i < n_blocks; ++i, ++packed) {
                std::memset(packed, 0, sizeof *packed);
                for (int row = 0; row < std::min(kRows, n_rows - first); ++row) {
                    const QuantisedBlock& block =
                        inputs[std::ptrdiff_t{first + row} * n_blocks + i];
                    std::memcpy(packed->values[row], block.values, kQuantBlock);
                    packed->scales[row] = block.scale;
                    packed->scaled_sums[row] = block.scaled_sum;
                    packed->starts[row] = static_cast<std::int32_t>(
                        static_cast<std::uint32_t>(block.less_of_all()) << Codes::kOffsetBits);
                }
            }
        }
    }

    // 16 rows of a group, from `first_row` on, times packed rows of the pass.
    static void run_rows(const Product& product,
                         int group,
                         int first_row,
                         int first,
                         int n_rows,
                         const PackedBlock* packed) {
        const PackedMatrix& matrix = *product.matrix;
        const int first_out = group * kGroupRows + first_row;
        const int n_out = std::min(kRows, matrix.n_out - first_out);
        if (n_out <= 0) {
            return;
        }
        const int n_blocks = matrix.n_in / kQuantBlock;
        const std::byte* unit =
            matrix.data + group_bytes(matrix.type, matrix.n_in) * static_cast<std::size_t>(group);
        const int n_chunks = (n_rows + kRows - 1) / kRows;
        Sums sums[kMaxChunks];
        std::memset(sums, 0, sizeof(Sums) * static_cast<std::size_t>(n_chunks));
        Panel panel;
        for (int i = 0; i < n_blocks; i += kPanel) {
            const int n = std::min(kPanel, n_blocks - i);
            unpack(unit + std::ptrdiff_t{i / Layout::kBlocks} * Layout::kBytes, first_row, n,
                   panel);
            for (int chunk = 0; chunk < n_chunks; ++chunk) {
                run_chunk(panel, packed + std::ptrdiff_t{chunk} * n_blocks + i, n, sums[chunk]);
            }
        }
        for (int row = 0; row < n_rows; ++row) {
            const std::ptrdiff_t at = (first + row) * product.stride + first_out;
            const float* values = sums[row / kRows].values[row % kRows];
            for (int o = 0; o < n_out; ++o) {
                product.out[at + o] =
                    product.added != nullptr ? product.added[at + o] + values[o] : values[o];
            }
        }
    }

    static void unpack(const std::byte* unit, int first_row, int n_blocks, Panel& panel) {
        for (int i = 0; i < n_blocks; ++i) {
            const int b = i % Layout::kBlocks;
#pragma GCC unroll 8
            for (int row = 0; row < kRows; row += kWidth) {
                unpack_quad<0>(unit, b, first_row + row, panel.quads[i], row);
                unpack_quad<1>(unit, b, first_row + row, panel.quads[i], row);
                unpack_quad<2>(unit, b, first_row + row, panel.quads[i], row);
                unpack_quad<3>(unit, b, first_row + row, panel.quads[i], row);
                Simd::store(panel.scales[i] + row, Codes::scale(unit, b, 0, first_row + row));
                if constexpr (Codes::kHasMinima) {
                    Simd::store(panel.minima[i] + row, Codes::minimum(unit, b, first_row + row));
                }
            }
            unit += b == Layout::kBlocks - 1 ? Layout::kBytes : 0;
        }
    }

    template <int Quad>
    [[gnu::always_inline]] static void unpack_quad(
        const std::byte* unit, int b, int row, std::byte (&quads)[8][kRows][4], int at) {
        const auto codes = Codes::template load<Quad>(unit, b, row);
        std::memcpy(quads[Quad][at], &codes.first, sizeof codes.first);
        std::memcpy(quads[Quad + 4][at], &codes.second, sizeof codes.second);
    }

    // Adds the blocks of a panel to the sums of 16 rows. Scaling is a block behind: what the tile
    // registers have just stored takes a while to read.
    [[gnu::noinline]] static void run_chunk(const Panel& panel,
                                            const PackedBlock* inputs,
                                            int n_blocks,
                                            Sums& all) {
        Vector sums[kRows][kVectors];
#pragma GCC unroll 16
        for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 16
            for (int v = 0; v < kVectors; ++v) {
                sums[row][v] = Simd::load(all.values[row] + v * kWidth);
            }
        }
        Dots dots[2];
        Tiles::multiply(inputs[0].values[0], panel.quads[0][0][0], dots[0].values[0]);
        for (int i = 1; i < n_blocks; ++i) {
            Tiles::multiply(inputs[i].values[0], panel.quads[i][0][0], dots[i % 2].values[0]);
            add(dots[(i - 1) % 2], inputs[i - 1], panel.scales[i - 1], panel.minima[i - 1], sums);
        }
        const int last = n_blocks - 1;
        add(dots[last % 2], inputs[last], panel.scales[last], panel.minima[last], sums);
#pragma GCC unroll 16
        for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 16
            for (int v = 0; v < kVectors; ++v) {
                Simd::store(all.values[row] + v * kWidth, sums[row][v]);
            }
        }
    }

    [[gnu::always_inline]] static void add(const Dots& dots,
                                           const PackedBlock& inputs,
                                           const float* scales,
                                           const float* minima,
                                           Vector (&sums)[kRows][kVectors]) {
#pragma GCC unroll 16
        for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 16
            for (int v = 0; v < kVectors; ++v) {
                Ints dot = Simd::load_ints(dots.values[row] + v * kWidth);
                if constexpr (Codes::kOffsetBits > 0) {
                    dot = Simd::add(dot, Simd::broadcast_int(inputs.starts[row]));
                }
                const Vector scaled =
                    Simd::multiply(Simd::to_floats(dot), Simd::load(scales + v * kWidth));
                sums[row][v] =
                    Simd::fmadd(scaled, Simd::broadcast(inputs.scales[row]), sums[row][v]);
                if constexpr (Codes::kHasMinima) {
                    sums[row][v] =
                        Simd::fmadd(Simd::load(minima + v * kWidth),
                                    Simd::broadcast(inputs.scaled_sums[row]), sums[row][v]);
                }
            }
        }
    }
};

}  // namespace
}  // namespace knap

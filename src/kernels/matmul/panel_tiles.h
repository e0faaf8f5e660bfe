// Products of quantised matrices and several rows, with the bits of the tiles in matmul_body.h.
//
// A group of matrix rows is taken in panels of eight blocks. All rows of the pass meet a panel
// before the next one comes, so that its weights stay in the nearest cache and its scales are
// computed once. The sums of the rows wait in memory from panel to panel. Where registers are few,
// they wait there from block to block, and the registers hold integers only.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <utility>

#include "kernels/matmul/ahead.h"
#include "kernels/matmul/matmul.h"
#include "kernels/matmul/weight_codes.h"

namespace knap {
namespace {

template <typename Simd, ggml_type Type>
class PanelTiles {
  public:
    // Whether `n_rows` rows are faster in panels. They are not where a single tile takes them all,
    // and, with many registers, where only the multiplier limits the other tiles.
    static bool is_faster(int n_rows) {
        if (kKeepsSums) {
            return Codes::kIsSuperBlock && n_rows > kColumns;
        }
        return Codes::kIsSuperBlock || n_rows > (kHalves == 2 ? 1 : 2);
    }

    static void run(const Product& product) {
        // As many rows at a time as keep their inputs in the CPU's second cache, and their sums in
        // the first, while all groups pass.
        constexpr std::size_t kNearBytes = 512 << 10;
        const std::size_t row_bytes = input_row_bytes(InputForm::quantised, product.matrix->n_in);
        const int n_near = std::clamp(
            static_cast<int>(kNearBytes / row_bytes) / kColumns * kColumns, kColumns, kMaxRows);
        for (int first = 0; first < product.n_rows; first += n_near) {
            const int n_rows = std::min(n_near, product.n_rows - first);
            for (int i = 0; i < product.n_groups; ++i) {
                run_group(product, product.first_group + i, first, n_rows);
            }
        }
    }

  private:
    using Ahead = knap::Ahead<Simd, true>;
    using Codes = WeightCodes<Simd, Type>;
    using Layout = UnitLayout<Type>;
    using Vector = typename Simd::Vector;
    using Ints = typename Simd::Ints;
    using Bytes = typename Simd::Bytes;
    static constexpr int kWidth = Simd::kWidth;
    static constexpr int kVectors = 2;                   // per tile
    static constexpr int kTileRows = kVectors * kWidth;  // matrix rows per tile
    static constexpr int kColumns = 6;                   // rows of the pass per tile, at most
    static constexpr int kMaxRows = 16 * kColumns;
    static constexpr int kBlocks = 8;  // per panel
    static constexpr int kHalves = Codes::kHalves;
    static constexpr int kQuads = 8 / kHalves;  // that share a scale
    static constexpr bool kKeepsSums = Simd::kRegisters >= 32;
    static constexpr bool kHasShorts = Simd::kHasShortSums;
    // Inputs are widened to 16 bits when there is no other exact product of eight bits.
    static constexpr bool kWidens = kHasShorts && Layout::kIsBytes;
    // Sums of two products that 16 bits can add up: 2 * 128 * 15 * 8, 2 * 128 * 31 * 4 and
    // 2 * 128 * 63 * 2 are below 2^15.
    static constexpr int kDepth = 8 >> Layout::kHighBits;
    static_assert(kBlocks % Layout::kBlocks == 0);

    struct Panel {
        const std::byte* unit;
        int n_blocks;  // fewer than kBlocks in the last panel
        alignas(64) float scales[kBlocks][kHalves][kGroupRows];
        alignas(64) float minima[kBlocks][kGroupRows];
    };

    // Inputs of the first block of a panel, one row after the other.
    struct Inputs {
        const QuantisedBlock* blocks;
        std::ptrdiff_t stride;      // in blocks
        const std::int16_t* words;  // [rows][kBlocks][kQuantBlock], as Simd::widen() orders them

        const QuantisedBlock& block(int column, int i) const { return blocks[column * stride + i]; }
        const std::int16_t* word(int column, int i) const {
            return words + std::ptrdiff_t{column * kBlocks + i} * kQuantBlock;
        }
    };

    static void run_group(const Product& product, int group, int first, int n_rows) {
        const PackedMatrix& matrix = *product.matrix;
        const int n_blocks = matrix.n_in / kQuantBlock;
        const std::size_t n_bytes = group_bytes(matrix.type, matrix.n_in);
        const int n_tiles = (n_rows + kColumns - 1) / kColumns;
        const auto* inputs = reinterpret_cast<const QuantisedBlock*>(product.inputs) +
                             std::ptrdiff_t{first} * n_blocks;
        alignas(64) float sums[kMaxRows][kGroupRows];
        std::fill_n(sums[0], n_rows * kGroupRows, 0.0f);
        Panel panel;
        panel.unit = matrix.data + n_bytes * static_cast<std::size_t>(group);
        Ahead ahead(panel.unit, n_bytes, Ahead::kNearest,
                    kGroupRows / kTileRows * n_tiles * n_blocks, product.next_of(group));
        for (int i = 0; i < n_blocks; i += kBlocks) {
            panel.n_blocks = std::min(kBlocks, n_blocks - i);
            fill_scales(panel);
            int row = 0;
            for (int left = n_tiles; left > 0; --left) {
                const int n = (n_rows - row + left - 1) / left;  // tiles of about the same size
                run_columns<kColumns>(
                    n, panel, {inputs + std::ptrdiff_t{row} * n_blocks + i, n_blocks, nullptr},
                    sums[row], ahead);
                row += n;
            }
            panel.unit += kBlocks / Layout::kBlocks * Layout::kBytes;
        }
        const int first_out = group * kGroupRows;
        const int n_out = std::min(kGroupRows, matrix.n_out - first_out);
        for (int row = 0; row < n_rows; ++row) {
            const std::ptrdiff_t at = (first + row) * product.stride + first_out;
            put(sums[row], n_out, product.out + at,
                product.added != nullptr ? product.added + at : nullptr);
        }
    }

    static void put(const float* sums, int n_out, float* out, const float* added) {
        int i = 0;
        for (; i + kWidth <= n_out; i += kWidth) {
            const Vector sum = Simd::load(sums + i);
            Simd::store(out + i, added != nullptr ? Simd::add(Simd::load(added + i), sum) : sum);
        }
        for (; i < n_out; ++i) {
            out[i] = added != nullptr ? added[i] + sums[i] : sums[i];
        }
    }

    static void fill_scales(Panel& panel) {
        for (int i = 0; i < panel.n_blocks; i += Layout::kBlocks) {
            const std::byte* unit =
                panel.unit + std::ptrdiff_t{i / Layout::kBlocks} * Layout::kBytes;
            const typename Codes::Scales scales(unit);
            for (int row = 0; row < kGroupRows; row += kWidth) {
#pragma GCC unroll 8
                for (int b = 0; b < Layout::kBlocks; ++b) {
#pragma GCC unroll 8
                    for (int half = 0; half < kHalves; ++half) {
                        Simd::store(panel.scales[i + b][half] + row, scales.scale(b, half, row));
                    }
                    if constexpr (Codes::kHasMinima) {
                        Simd::store(panel.minima[i + b] + row, scales.minimum(b, row));
                    }
                }
            }
        }
    }

    // `n` rows, at most `Columns`.
    template <int Columns>
    static void run_columns(int n, const Panel& panel, Inputs x, float* sums, Ahead& ahead) {
        if constexpr (Columns > 1) {
            if (n < Columns) {
                return run_columns<Columns - 1>(n, panel, x, sums, ahead);
            }
        }
        alignas(64) std::int16_t words[kWidens ? Columns * kBlocks * kQuantBlock : 1];
        if constexpr (kWidens) {
            x.words = words;
            for (int c = 0; c < Columns; ++c) {
                for (int i = 0; i < panel.n_blocks; ++i) {
                    Simd::widen(x.block(c, i).values,
                                words + std::ptrdiff_t{c * kBlocks + i} * kQuantBlock);
                }
            }
        }
        for (int row = 0; row < kGroupRows; row += kTileRows) {
            run_tile<Columns>(panel, row, x, sums + row, ahead);
        }
    }

    // A function of its own: its registers are all taken.
    template <int Columns>
    [[gnu::noinline]] static void run_tile(
        const Panel& panel, int first_row, Inputs x, float* sums, Ahead& ahead_of_group) {
        Ahead ahead = ahead_of_group;
        Vector kept[Columns][kVectors];
        if constexpr (kKeepsSums) {
            for_each_sum<Columns>([&](int c, int v) __attribute__((always_inline)) {
                kept[c][v] = Simd::load(sums + c * kGroupRows + v * kWidth);
            });
        }
        for (int i = 0; i < panel.n_blocks; ++i) {
            ahead.fetch();
            add_half<Columns, 0>(panel, i, first_row, x, kept, sums);
            if constexpr (kHalves == 2) {
                add_half<Columns, 1>(panel, i, first_row, x, kept, sums);
            }
        }
        if constexpr (kKeepsSums) {
            for_each_sum<Columns>([&](int c, int v) __attribute__((always_inline)) {
                Simd::store(sums + c * kGroupRows + v * kWidth, kept[c][v]);
            });
        }
        ahead_of_group = ahead;
    }

    template <int Columns, typename Visit>
    [[gnu::always_inline]] static void for_each_sum(Visit visit) {
#pragma GCC unroll 8
        for (int c = 0; c < Columns; ++c) {
#pragma GCC unroll 8
            for (int v = 0; v < kVectors; ++v) {
                visit(c, v);
            }
        }
    }

    // Adds the inputs of block `i` that share a scale: all of them, or one half.
    template <int Columns, int Half>
    [[gnu::always_inline]] static void add_half(const Panel& panel,
                                                int i,
                                                int first_row,
                                                const Inputs& x,
                                                Vector (&kept)[Columns][kVectors],
                                                float* sums) {
        // The address for which Codes::load() finds this block and row in place of the first.
        const std::byte* codes = panel.unit + std::ptrdiff_t{i / Layout::kBlocks} * Layout::kBytes +
                                 std::ptrdiff_t{i % Layout::kBlocks} * Layout::kBlockBytes +
                                 std::ptrdiff_t{first_row} * 4;
        Ints dots[Columns][kVectors];
        if constexpr (!kHasShorts) {
            for_each_sum<Columns>([&](int c, int v) __attribute__((always_inline)) {
                dots[c][v] = start<Half>(x.block(c, i));
            });
        }
        Ints shorts[Columns][kVectors];
        [&]<int... Quads>(std::integer_sequence<int, Quads...>) __attribute__((always_inline)) {
            (add_quad<Columns, Half, Quads>(codes, i, x, shorts, dots), ...);
        }
        (std::make_integer_sequence<int, kQuads>());
        const float* scale = panel.scales[i][Half] + first_row;
        const float* minimum = panel.minima[i] + first_row;
        forget_loads();
        for_each_sum<Columns>([&](int c, int v) __attribute__((always_inline)) {
            const QuantisedBlock& block = x.block(c, i);
            float* place = sums + c * kGroupRows + v * kWidth;
            Ints dot = dots[c][v];
            if constexpr (kHasShorts && Layout::kOffset > 0) {
                dot = Simd::add(dot, start<Half>(block));
            }
            Vector sum = kKeepsSums ? kept[c][v] : Simd::load(place);
            sum = Simd::fmadd(Simd::multiply(Simd::to_floats(dot), Simd::load(scale + v * kWidth)),
                              Simd::broadcast(block.scale), sum);
            if constexpr (Codes::kHasMinima) {
                sum = Simd::fmadd(Simd::load(minimum + v * kWidth),
                                  Simd::broadcast(block.scaled_sum), sum);
            }
            if constexpr (kKeepsSums) {
                kept[c][v] = sum;
            } else {
                Simd::store(place, sum);
            }
        });
    }

    // Minus the offset of the codes, times the sum of the inputs.
    template <int Half>
    [[gnu::always_inline]] static Ints start(const QuantisedBlock& block) {
        if constexpr (Layout::kOffset == 0) {
            return Simd::zero_ints();
        } else {
            constexpr int kBits = std::countr_zero(static_cast<unsigned>(Layout::kOffset));
            static_assert(Layout::kOffset == 1 << kBits);
            const std::int32_t less = kHalves == 2 ? block.less[Half] : block.less_of_all();
            return Simd::template shift_left<kBits>(Simd::broadcast_int(less));
        }
    }

    // Adds four inputs of every row. Low and high nibbles alternate unless they have scales of
    // their own.
    template <int Columns, int Half, int Quad>
    [[gnu::always_inline]] static void add_quad(const std::byte* weights,
                                                int i,
                                                const Inputs& x,
                                                Ints (&shorts)[Columns][kVectors],
                                                Ints (&dots)[Columns][kVectors]) {
        constexpr int kStored = kHalves == 2 ? Quad : Quad / 2;
        constexpr bool kIsSecond = kHalves == 2 ? Half == 1 : Quad % 2 == 1;
        constexpr int kFirst = 4 * kStored + (kIsSecond ? kQuantBlock / 2 : 0);
        forget_loads();
        Bytes codes[kVectors];
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) {
            const auto pair = Codes::template load<kStored>(weights, 0, v * kWidth);
            codes[v] = kIsSecond ? pair.second : pair.first;
            Simd::pin(codes[v]);
        }
        if constexpr (kWidens) {
            add_words<Columns, Quad == 0>(codes, i, kFirst, x, dots);
        } else {
#pragma GCC unroll 8
            for (int c = 0; c < Columns; ++c) {
                Bytes input = Simd::broadcast_quad(x.block(c, i).values + kFirst);
                Simd::pin(input);
#pragma GCC unroll 8
                for (int v = 0; v < kVectors; ++v) {
                    if constexpr (kHasShorts) {
                        add_shorts<Quad>(codes[v], input, shorts[c][v], dots[c][v]);
                    } else {
                        dots[c][v] = Simd::dot(dots[c][v], codes[v], input);
                    }
                }
            }
        }
    }

    // Sums of 16 bits, moved to `dot` when they are full. Pinned: the compiler would compute all
    // products first, and run out of registers.
    template <int Quad>
    [[gnu::always_inline]] static void add_shorts(Bytes codes,
                                                  Bytes input,
                                                  Ints& shorts,
                                                  Ints& dot) {
        const Ints products = Simd::dot_shorts(codes, input);
        shorts = Quad % kDepth == 0 ? products : Simd::add_shorts(shorts, products);
        Simd::pin(shorts);
        if constexpr (Quad % kDepth == kDepth - 1) {
            const Ints sum = Simd::sum_shorts(shorts);
            dot = Quad < kDepth ? sum : Simd::add(dot, sum);
            Simd::pin(dot);
        }
    }

    // Four codes of eight bits as two pairs of words.
    template <int Columns, bool IsFirst>
    [[gnu::always_inline]] static void add_words(const Bytes (&codes)[kVectors],
                                                 int i,
                                                 int first,
                                                 const Inputs& x,
                                                 Ints (&dots)[Columns][kVectors]) {
#pragma GCC unroll 2
        for (int odd = 0; odd < 2; ++odd) {
            Bytes words[kVectors];
#pragma GCC unroll 8
            for (int v = 0; v < kVectors; ++v) {
                words[v] = odd == 0 ? Simd::even_words(codes[v]) : Simd::odd_words(codes[v]);
                Simd::pin(words[v]);
            }
#pragma GCC unroll 8
            for (int c = 0; c < Columns; ++c) {
                Bytes input = Simd::broadcast_words(x.word(c, i) + first + 2 * odd);
                Simd::pin(input);
#pragma GCC unroll 8
                for (int v = 0; v < kVectors; ++v) {
                    const Ints products = Simd::dot_words(words[v], input);
                    dots[c][v] = IsFirst && odd == 0 ? products : Simd::add(dots[c][v], products);
                    Simd::pin(dots[c][v]);
                }
            }
        }
    }

    // Where registers are few, the compiler should load again what it would otherwise spill.
    [[gnu::always_inline]] static void forget_loads() {
        if constexpr (!kKeepsSums) {
            std::atomic_signal_fence(std::memory_order_seq_cst);
        }
    }
};

}  // namespace
}  // namespace knap

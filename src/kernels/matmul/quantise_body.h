// Rounds rows to eight bits, as templates over a vector type (simd_*.h). Blocks are always whole,
// so every instruction set adds the same partial sums in the same order.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "kernels/matmul/matmul.h"
#include "kernels/matmul/quantise_four.h"
#include "kernels/power_of_two.h"

namespace knap {
namespace {

template <typename Simd>
class QuantiseBody {
  public:
    static void quantise(const float* x, std::span<QuantisedBlock> blocks) {
        put_all(blocks, [x](std::ptrdiff_t at, int /*n*/, float* /*out*/) { return x + at; });
    }

    static void norm_and_quantise(const float* x,
                                  const float* weight,
                                  int n,
                                  float eps,
                                  int first,
                                  std::span<QuantisedBlock> blocks) {
        const Vector scale = Simd::broadcast(1.0f / std::sqrt(mean_square(x, n) + eps));
        x += std::ptrdiff_t{first} * kQuantBlock;
        weight += std::ptrdiff_t{first} * kQuantBlock;
        put_all(blocks, [&](std::ptrdiff_t at, int n_here, float* out) {
            for (int i = 0; i < n_here; i += kWidth) {
                const Vector normed = Simd::multiply(Simd::load(x + at + i), scale);
                Simd::store(out + i, Simd::multiply(normed, Simd::load(weight + at + i)));
            }
            return out;
        });
    }

    static void gate_and_quantise(Activation activation,
                                  const float* gate,
                                  const float* up,
                                  std::span<QuantisedBlock> blocks) {
        switch (activation) {
            case Activation::silu:
                return gate_blocks<Activation::silu>(gate, up, blocks);
            case Activation::gelu:
                return gate_blocks<Activation::gelu>(gate, up, blocks);
            case Activation::clamped_swiglu:
                return gate_blocks<Activation::clamped_swiglu>(gate, up, blocks);
        }
    }

    static void gate(Activation activation, const float* gate, const float* up, int n, float* out) {
        switch (activation) {
            case Activation::silu:
                return gate_row<Activation::silu>(gate, up, n, out);
            case Activation::gelu:
                return gate_row<Activation::gelu>(gate, up, n, out);
            case Activation::clamped_swiglu:
                return gate_row<Activation::clamped_swiglu>(gate, up, n, out);
        }
    }

  private:
    using Vector = typename Simd::Vector;
    using Ints = typename Simd::Ints;
    static constexpr int kWidth = Simd::kWidth;
    static constexpr int kVectors = kQuantBlock / kWidth;

    template <Activation A>
    static void gate_blocks(const float* gate, const float* up, std::span<QuantisedBlock> blocks) {
        put_all(blocks, [&](std::ptrdiff_t at, int n, float* out) {
            for (int i = 0; i < n; i += kQuantBlock) {
                gate_block<A>(gate + at + i, up + at + i, out + i);
            }
            return out;
        });
    }

    template <Activation A>
    static void gate_row(const float* gate, const float* up, int n, float* out) {
        int i = 0;
        for (; i + kQuantBlock <= n; i += kQuantBlock) {
            gate_block<A>(gate + i, up + i, out + i);
        }
        if (i < n) {  // fewer than a block, with zeros behind them
            float gates[kQuantBlock] = {};
            float ups[kQuantBlock] = {};
            std::copy(gate + i, gate + n, gates);
            std::copy(up + i, up + n, ups);
            gate_block<A>(gates, ups, gates);
            std::copy(gates, gates + (n - i), out + i);
        }
    }

    template <Activation A>
    static void gate_block(const float* gate, const float* up, float* out) {
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) {
            Simd::store(out + v * kWidth, gated<A>(gate + v * kWidth, up + v * kWidth));
        }
    }

    template <Activation A>
    static Vector gated(const float* gate, const float* up) {
        const Vector x = Simd::load(gate);
        if constexpr (A == Activation::clamped_swiglu) {
            return clamped_swiglu(x, Simd::load(up));
        }
        const Vector activated =
            A == Activation::gelu ? times_sigmoid(x, gelu_argument(x)) : times_sigmoid(x, x);
        return Simd::multiply(activated, Simd::load(up));
    }

    // a / (1 + e^(-alpha a)) * (b + 1), where a is the gate, at most the limit, and b the other
    // half, clamped to the limit.
    static Vector clamped_swiglu(Vector gate, Vector up) {
        const Vector limit = Simd::broadcast(kSwigluLimit);
        const Vector lowest = Simd::broadcast(-kSwigluLimit);
        const Vector a = Simd::select_at_least(gate, limit, limit, gate);
        const Vector b = Simd::max(Simd::select_at_least(up, limit, limit, up), lowest);
        const Vector activated = times_sigmoid(a, Simd::multiply(a, Simd::broadcast(kSwigluAlpha)));
        return Simd::multiply(activated, Simd::add(b, Simd::broadcast(1.0f)));
    }

    // Rounds the numbers that read(at, n, out) gives: `n` of them from `at` on, which may be
    // written to `out`. They are computed for many blocks before any is rounded, so that neither
    // waits for the other.
    template <typename Read>
    static void put_all(std::span<QuantisedBlock> blocks, Read read) {
        constexpr std::size_t kAtOnce = 16;
        alignas(64) float values[kAtOnce * kQuantBlock];
        for (std::size_t i = 0; i < blocks.size(); i += kAtOnce) {
            const std::size_t n = std::min(kAtOnce, blocks.size() - i);
            put_blocks(read(static_cast<std::ptrdiff_t>(i) * kQuantBlock,
                            static_cast<int>(n) * kQuantBlock, values),
                       blocks.subspan(i, n));
        }
    }

    static void put_blocks(const float* x, std::span<QuantisedBlock> blocks) {
        std::size_t i = 0;
#if defined(__AVX2__)
        if constexpr (kWidth >= 8) {
            using Four = FourBlocks<Simd>;
            for (; i + Four::kBlocks <= blocks.size(); i += Four::kBlocks) {
                Four::put(x + i * kQuantBlock, blocks.data() + i, Four::kBlocks);
            }
            if (blocks.size() - i == Four::kBlocks - 1) {
                Four::put(x + i * kQuantBlock, blocks.data() + i, Four::kBlocks - 1);
                return;
            }
        }
#endif
        for (; i < blocks.size(); ++i) {
            put(x + i * kQuantBlock, blocks[i]);
        }
    }

    static void put(const float* x, QuantisedBlock& block) {
        Vector values[kVectors];
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) {
            values[v] = Simd::load(x + v * kWidth);
        }
        Vector highest = Simd::abs(values[0]);
#pragma GCC unroll 8
        for (int v = 1; v < kVectors; ++v) {
            highest = Simd::max(highest, Simd::abs(values[v]));
        }
        const float max = Simd::reduce_max(highest);
        const Vector inverse = Simd::broadcast(max > kLeastQuantised ? kMostQuantised / max : 0.0f);
        // Unsigned, because NaN inputs give meaningless sums that may overflow.
        std::uint32_t sums[2] = {0, 0};
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) {
            const Ints rounded = Simd::round_to_ints(Simd::multiply(values[v], inverse));
            Simd::store_bytes(block.values + v * kWidth, rounded);
            sums[v / (kVectors / 2)] += static_cast<std::uint32_t>(Simd::reduce_add(rounded));
        }
        block.scale = max / kMostQuantised;
        block.scaled_sum =
            block.scale * static_cast<float>(static_cast<std::int32_t>(sums[0] + sums[1]));
        block.less[0] = static_cast<std::int32_t>(0U - sums[0]);
        block.less[1] = static_cast<std::int32_t>(0U - sums[1]);
    }

    // Sums every 32nd number separately, then adds the partial sums in halves.
    static float mean_square(const float* x, int n) {
        Vector sums[kVectors];
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) {
            sums[v] = Simd::zero();
        }
        for (int i = 0; i < n; i += kQuantBlock) {
#pragma GCC unroll 8
            for (int v = 0; v < kVectors; ++v) {
                const Vector value = Simd::load(x + i + v * kWidth);
                sums[v] = Simd::fmadd(value, value, sums[v]);
            }
        }
        float partial[kQuantBlock];
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) {
            Simd::store(partial + v * kWidth, sums[v]);
        }
        for (int half = kQuantBlock / 2; half > 0; half /= 2) {
            for (int i = 0; i < half; ++i) {
                partial[i] += partial[i + half];
            }
        }
        return partial[0] / static_cast<float>(n);
    }

    // x / (1 + e^-y), computed from e^-|y|, which cannot overflow. silu(x) has y = x.
    static Vector times_sigmoid(Vector x, Vector y) {
        const Vector one = Simd::broadcast(1.0f);
        const Vector power =
            power_of_two<Simd>(Simd::multiply(Simd::abs(y), Simd::broadcast(-kLog2E)));
        const Vector above = Simd::select_at_least(y, Simd::zero(), one, power);
        return Simd::multiply(x, Simd::divide(above, Simd::add(one, power)));
    }

    // gelu(x) = x (1 + tanh z) / 2 = x / (1 + e^-2z) with z = sqrt(2 / pi) (x + 0.044715 x^3).
    static Vector gelu_argument(Vector x) {
        constexpr float kTwice = 2 * 0.79788456080286535588f;
        constexpr float kCubic = 0.044715f;
        const Vector square = Simd::multiply(x, x);
        const Vector factor =
            Simd::fmadd(square, Simd::broadcast(kTwice * kCubic), Simd::broadcast(kTwice));
        return Simd::multiply(x, factor);
    }
};

}  // namespace
}  // namespace knap

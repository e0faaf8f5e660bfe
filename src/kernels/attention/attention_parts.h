// Parts that the attention kernels of every cache type share, as templates over a vector type (see
// simd_plain.h). Everything is in an unnamed namespace, as there.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "kernels/attention/attention.h"
#include "kernels/power_of_two.h"

namespace knap {
namespace {

// Calls run.operator()<Columns>(first) for groups of columns, so that their number is a
// compile-time constant: six at a time, then the rest.
template <typename Run>
void for_each_group(int n_columns, Run run) {
    int first = 0;
    const auto run_groups_of = [&]<int Columns>() {
        for (; first + Columns <= n_columns; first += Columns) {
            run.template operator()<Columns>(first);
        }
    };
    [&]<int... Columns>(std::integer_sequence<int, Columns...>) {
        (run_groups_of.template operator()<Columns>(), ...);
    }
    (std::integer_sequence<int, 6, 5, 4, 3, 2, 1>());
}

// Vectors per column, such that the sums of `Columns` columns fit in `Registers` registers.
template <int Columns, int Registers>
constexpr int vectors_per_column() {
    constexpr int kFit = Registers / Columns;
    return kFit >= 4 ? 4 : kFit >= 2 ? 2 : 1;
}

// Prefetches the rows needed next, `Lines` cache lines of keys and of values per step.
template <int Lines>
class ReadAhead {
  public:
    // Prefetches the share of the rows that falls to columns [first, first + count), in `n_steps`
    // steps.
    ReadAhead(const AttentionChunk& chunk, const NextRows& next, int first, int count, int n_steps)
        : step_(next.bytes * count / chunk.n_columns / n_steps) {
        const std::ptrdiff_t begin = next.bytes * first / chunk.n_columns;
        keys_ = static_cast<const char*>(next.keys) + begin;
        values_ = static_cast<const char*>(next.values) + begin;
    }

    void skip(int n_steps) {
        keys_ += n_steps * step_;
        values_ += n_steps * step_;
    }
    void step() {
        constexpr int kForReading = 0;
        constexpr int kSecondLevel = 2;
        constexpr std::ptrdiff_t kLineBytes = 64;
        for (int line = 0; line < Lines; ++line) {
            __builtin_prefetch(keys_ + line * kLineBytes, kForReading, kSecondLevel);
            __builtin_prefetch(values_ + line * kLineBytes, kForReading, kSecondLevel);
        }
        skip(1);
    }

  private:
    const char* keys_;
    const char* values_;
    std::ptrdiff_t step_;
};

template <typename Simd>
class AttentionParts {
  public:
    using Vector = typename Simd::Vector;
    static constexpr int kWidth = Simd::kWidth;

    // Turns a column's scores into weights 2^(scale * score - maximum), and stores the maximum and
    // the sum of weights in its partial result.
    static void soften(const AttentionChunk& chunk, int column, float scale, float* scores) {
        const float highest = hide(chunk, column, scores);
        const float maximum = highest * scale;
        float* partial = chunk.partials[column];
        partial[chunk.head_dim] = maximum;
        // A column that attends to nothing here has no maximum; any finite offset gives it zero
        // weights.
        const Vector offset = Simd::broadcast(highest == kNothing ? 0.0f : maximum);
        const Vector scales = Simd::broadcast(scale);
        Vector sums[kStride];
        std::fill_n(sums, kStride, Simd::zero());
        for (int i = 0; i < chunk.n_positions; i += kStride * kWidth) {
            for (int j = 0; j < kStride; ++j) {
                float* place = scores + i + std::ptrdiff_t{j} * kWidth;
                const Vector weight =
                    power_of_two<Simd>(Simd::fmsub(Simd::load(place), scales, offset));
                Simd::store(place, weight);
                sums[j] = Simd::add(sums[j], weight);
            }
        }
        partial[chunk.head_dim + 1] =
            Simd::reduce_add(Simd::add(Simd::add(sums[0], sums[1]), Simd::add(sums[2], sums[3])));
    }

    static void merge(int head_dim, float* state, const float* partial) {
        const float partial_max = partial[head_dim];
        if (partial_max == kNothing) {
            return;
        }
        const float max = std::max(state[head_dim], partial_max);
        const float keep = std::exp2(state[head_dim] - max);  // 0 while the state is empty
        const float take = std::exp2(partial_max - max);
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
    static constexpr float kNothing = -std::numeric_limits<float>::infinity();
    static constexpr int kStride = 4;  // vectors at once, so that latencies overlap
    static_assert(kAttentionStep % (kStride * kWidth) == 0);

    // Sets the scores of hidden positions to -infinity. Returns the highest of the others.
    static float hide(const AttentionChunk& chunk, int column, float* scores) {
        const std::uint16_t* mask = chunk.masks[column];
        const bool hides = any_bit(mask, chunk.n_positions);
        Vector highest[kStride];
        std::fill_n(highest, kStride, Simd::broadcast(kNothing));
        for (int i = 0; i < chunk.n_positions; i += kStride * kWidth) {
            for (int j = 0; j < kStride; ++j) {
                const std::ptrdiff_t at = i + std::ptrdiff_t{j} * kWidth;
                Vector score = Simd::load(scores + at);
                if (hides) {
                    score = Simd::add(score, Simd::load_half(mask + at));
                    Simd::store(scores + at, score);
                }
                highest[j] = Simd::max(highest[j], score);
            }
        }
        return Simd::reduce_max(
            Simd::max(Simd::max(highest[0], highest[1]), Simd::max(highest[2], highest[3])));
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

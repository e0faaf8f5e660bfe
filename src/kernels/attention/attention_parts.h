// Loops that the attention kernels of every cache type share. Everything is in an unnamed
// namespace, as in simd_plain.h.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/rounding.h"
#include "kernels/attention/attention.h"

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

// Vectors per column, such that for_each_pair() and the sums of `Columns` columns need no more than
// `Registers` registers, `Others` of them for anything else.
template <int Columns, int Registers, int Others>
constexpr int vectors_per_column() {
    constexpr auto fits = [](int vectors) {
        return Columns * vectors + std::min(Columns, vectors) + Others <= Registers;
    };
    return fits(4) ? 4 : fits(2) ? 2 : 1;
}

// Calls combine(c, v, column(c), cached(v)) for all columns c and vectors v. Whichever are fewer
// are all loaded first; of the others one is live at a time, so that the sums stay in registers.
template <int Columns, int Vectors, typename Column, typename Cached, typename Combine>
[[gnu::always_inline]] inline void for_each_pair(Column column, Cached cached, Combine combine) {
    if constexpr (Columns < Vectors) {
        decltype(column(0)) numbers[Columns];
#pragma GCC unroll 8
        for (int c = 0; c < Columns; ++c) {
            numbers[c] = column(c);
        }
#pragma GCC unroll 8
        for (int v = 0; v < Vectors; ++v) {
            const auto vector = cached(v);
#pragma GCC unroll 8
            for (int c = 0; c < Columns; ++c) {
                combine(c, v, numbers[c], vector);
            }
        }
    } else {
        decltype(cached(0)) vectors[Vectors];
#pragma GCC unroll 8
        for (int v = 0; v < Vectors; ++v) {
            vectors[v] = cached(v);
        }
#pragma GCC unroll 8
        for (int c = 0; c < Columns; ++c) {
            const auto number = column(c);
#pragma GCC unroll 8
            for (int v = 0; v < Vectors; ++v) {
                combine(c, v, number, vectors[v]);
            }
        }
    }
}

// Leading positions of a chunk, at least one, behind which none of `count` columns from `first` on
// sees anything: whatever is there has no weight.
inline int count_seen(const AttentionChunk& chunk, int first, int count) {
    if (chunk.n_visible == nullptr) {
        return chunk.n_positions;
    }
    int n_seen = 1;
    for (int c = first; c < first + count; ++c) {
        const int n_visible = chunk.n_visible[c];
        n_seen = std::max(n_seen, n_visible == kUnknownPrefix ? chunk.n_positions : n_visible);
    }
    return n_seen;
}

// The same chunk, with as many positions as `n_seen` need.
inline AttentionChunk shortened(const AttentionChunk& chunk, int n_seen) {
    AttentionChunk shorter = chunk;
    shorter.n_positions = round_up(n_seen, kAttentionStep);
    return shorter;
}

// Calls score.operator()<Vectors>(position) until `n_seen` positions have scores. The remaining
// ones of a shortened() chunk get any number: their masks hide them.
template <int Columns, int Vectors, int Width, typename Score>
[[gnu::always_inline]] inline void score_seen(int n_seen,
                                              float (&scores)[Columns][kAttentionChunk],
                                              Score score) {
    constexpr int kLanes = Vectors * Width;
    int position = 0;
    while (position < n_seen) {
        // Many lanes are too many for a short rest.
        if constexpr (kLanes == kAttentionStep) {
            if (n_seen - position <= kLanes / 2) {
                score.template operator()<Vectors / 2>(position);
                position += kLanes / 2;
                break;
            }
        }
        score.template operator()<Vectors>(position);
        position += kLanes;
    }
    for (auto& column : scores) {
        std::fill(column + position, column + round_up(n_seen, kAttentionStep), 0.0f);
    }
}

// Prefetches the rows needed next, `Lines` cache lines of keys and of values per step.
template <int Lines>
class ReadAhead {
  public:
    // Prefetches the share of the rows that falls to columns [first, first + count), in `n_steps`
    // steps.
    ReadAhead(const AttentionChunk& chunk, const NextRows& next, int first, int count, int n_steps)
        : step_(next.bytes * count / chunk.n_columns / std::max(n_steps, 1)) {
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

}  // namespace
}  // namespace knap

// Loops that the attention kernels of every cache type share. Everything is in an unnamed
// namespace, as in simd_plain.h.
#pragma once

#include <cstddef>
#include <utility>

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

}  // namespace
}  // namespace knap

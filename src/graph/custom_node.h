// Shared by the compute functions of our own nodes. ggml calls them once on every thread of its
// pool.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ggml.h"

namespace knap {

// The contiguous share of `n` items for one thread.
struct ThreadShare {
    ThreadShare(std::int64_t n, int thread, int n_threads)
        : begin(n * thread / n_threads), end(n * (thread + 1) / n_threads) {}
    std::int64_t begin;
    std::int64_t end;
};

// Row `row` of an f32 tensor whose rows need not be contiguous.
inline const float* float_row(const ggml_tensor* rows, std::int64_t row) {
    return reinterpret_cast<const float*>(static_cast<const std::byte*>(rows->data) +
                                          static_cast<std::size_t>(row) * rows->nb[1]);
}

}  // namespace knap

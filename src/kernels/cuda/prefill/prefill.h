// A pass of many rows, phase by phase, a kernel or two each. Every row gets the same bits as in a
// pass of its own: sums are added in the order of the step kernel (step_product.cuh,
// attention.cuh).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "kernels/cuda/device_memory.h"
#include "kernels/cuda/pass.h"

namespace knap {

inline constexpr int kMaxPrefillRows = 2048;

// The number of columns that inputs have in memory, for a pass of so many rows.
constexpr int prefill_stride(int n_rows) {
    return (n_rows + 127) / 128 * 128;
}

// What the host knows of a pass: the same that CudaPassData has on the device.
struct PrefillPlan {
    std::span<const CudaPhase> phases;
    // Of each plan of attention that a phase names. Blocks hold any number of rows, and all parts
    // that they see.
    std::array<std::span<const CudaBlock>, kMaxCudaAttentions> blocks;
};

// Bytes of CudaBuffers for passes of up to n_rows rows. `partials`, `best` and `barrier`
// are not used; logits, choices and probabilities have a place for each logit row, and captures one
// for each row.
struct PrefillBytes {
    std::size_t stream;
    std::size_t heads;
    std::size_t codes;   // each of both; only if some matrix takes int8 inputs
    std::size_t scales;  // each of both; likewise
    std::size_t floats;  // each of both; only if some matrix is F16 or BF16
    std::size_t halves;  // likewise
    std::size_t squares;
    std::size_t factors;

    PrefillBytes(const CudaShape& shape, int n_rows) {
        const auto rows = static_cast<std::size_t>(n_rows);
        const auto stride = static_cast<std::size_t>(prefill_stride(n_rows));
        const auto n_embd = static_cast<std::size_t>(shape.n_embd);
        const auto n_in =
            static_cast<std::size_t>(std::max({shape.n_embd, shape.n_q(), shape.n_ff}));
        stream = rows * n_embd * 4;
        heads = rows * static_cast<std::size_t>(shape.n_q() + 2 * shape.n_kv()) * 4;
        codes = n_in * stride;
        scales = n_in / 32 * stride * 8;
        floats = rows * n_in * 4;
        halves = n_in * stride * 2;
        squares = n_embd / 32 * stride * 4;
        factors = stride * 4;
    }
};

// Starts the pass, of 1 to kMaxPrefillRows rows, with inputs at a stride of prefill_stride(n_rows).
// It is no chain. Phases `merge` do nothing: `attend` does it. `head` and `choose` serve the rows
// of CudaPassData::logit_rows; `choose` needs the logits of a `head` before it. The step kernel
// must run with as many blocks as the device has multiprocessors for probabilities to be the same.
void run_prefill(const CudaDevice& device,
                 const CudaShape& shape,
                 const CudaBuffers& buffers,
                 const CudaPassData& pass,
                 const PrefillPlan& plan,
                 const CudaStream& stream);

}  // namespace knap

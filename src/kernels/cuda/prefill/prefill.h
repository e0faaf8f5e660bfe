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

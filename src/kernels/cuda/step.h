// A pass of a few rows, or a chain of passes of one row each, in one kernel that stays on the GPU
// from the first layer to the last. What it computes is data: any plan, any rows.
#pragma once

#include "kernels/cuda/device_memory.h"
#include "kernels/cuda/pass.h"
#include "kernels/cuda/step_memory.h"

namespace knap {

// How the kernel uses a device for a model: found once.
struct StepPlan {
    int n_blocks = 0;  // of the grid: one per multiprocessor
    std::size_t shared_bytes = 0;
    int max_rows = 0;    // of a pass
    int max_copies = 0;  // slots whose copies may be under way at once; 0: all
    StepNeeds needs{};
};

StepPlan plan_step(const CudaDevice& device, const StepNeeds& needs);

// The number of columns that inputs have in memory, for a pass of so many rows.
constexpr int step_stride(int n_rows) {
    return n_rows == 1 ? 1 : n_rows <= 8 ? 8 : 16;
}

// Numbers in CudaBuffers::best.
constexpr std::size_t best_numbers(int n_blocks) {
    return static_cast<std::size_t>(n_blocks) * kMaxStepRows * 4;
}

// Starts the pass, of at most StepPlan::max_rows rows. Pointers in the arguments are to device
// memory.
void run_step(const StepPlan& plan,
              const CudaShape& shape,
              const CudaBuffers& buffers,
              const CudaPassData& pass,
              const CudaStream& stream);

}  // namespace knap

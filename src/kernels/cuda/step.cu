#include <algorithm>

#include "kernels/cuda/cuda_check.h"
#include "kernels/cuda/step.h"
#include "kernels/cuda/step_attention.cuh"
#include "kernels/cuda/step_product.cuh"
#include "kernels/cuda/step_sampling.cuh"

namespace knap {
namespace {

// Tokens, or streams that are there, as inputs of the first product.
template <int Columns>
__device__ __forceinline__ void begin_rows(StepContext& c, const CudaPhase& phase) {
    const CudaShape& shape = c.args.shape;
    const StreamWriter writer = stream_writer(c.args.buffers, phase, Columns, shape.n_embd);
    const int n_blocks = shape.n_embd / 32;
    for (int i = static_cast<int>(blockIdx.x) * kStepWarps + c.warp; i < c.pass.n_rows * n_blocks;
         i += static_cast<int>(gridDim.x) * kStepWarps) {
        const int column = i / n_blocks;
        const int first = i % n_blocks * 32;
        float* at = c.args.buffers.stream + column * shape.n_embd + first + c.lane;
        if (phase.op == CudaPhase::Op::embed) {
            const int token = c.is_chain() && c.step > 0
                                  ? __ldcg(c.args.buffers.choices + c.step - 1)
                                  : c.own(c.pass.rows)[c.row_of(column)].token;
            const CudaMatrix& table = shape.embedding;
            const std::size_t strip_bytes =
                static_cast<std::size_t>(table.n_units) *
                static_cast<std::size_t>(strip_unit(static_cast<ggml_type>(table.type)).n_bytes);
            *at =
                weight_at(table.strips + static_cast<std::size_t>(token / kStripRows) * strip_bytes,
                          table.type, token % kStripRows, first + c.lane);
        }
        writer.write(*at, first, column, c.lane);
    }
}

__device__ __forceinline__ void capture_rows(StepContext& c, const CudaPhase& phase) {
    const CudaPassData& pass = c.pass;
    const int n_embd = c.args.shape.n_embd;
    const int n_rows = c.is_chain() ? pass.n_steps : pass.n_rows;
    float* to = c.args.buffers.captures +
                (static_cast<std::size_t>(phase.group) * static_cast<std::size_t>(n_rows) +
                 static_cast<std::size_t>(c.is_chain() ? c.step : 0)) *
                    static_cast<std::size_t>(n_embd);
    for (int i = static_cast<int>(blockIdx.x) * kStepThreads + c.thread; i < pass.n_rows * n_embd;
         i += static_cast<int>(gridDim.x) * kStepThreads) {
        to[i] = __ldcg(c.args.buffers.stream + i);
    }
}

template <int Columns>
__device__ __forceinline__ void run_phase(StepContext& c, const CudaPhase& phase) {
    switch (phase.op) {
        case CudaPhase::Op::embed:
        case CudaPhase::Op::take:
            begin_rows<Columns>(c, phase);
            break;
        case CudaPhase::Op::store:
            store_rows(c, phase);
            break;
        case CudaPhase::Op::attend:
            run_attention<Columns>(c, phase);
            break;
        case CudaPhase::Op::capture:
            capture_rows(c, phase);
            break;
        case CudaPhase::Op::choose:
            choose_tokens(c);
            break;
        case CudaPhase::Op::list:
            list_tokens(c);
            break;
        case CudaPhase::Op::draw:
            draw_tokens(c);
            break;
        default:
            run_product<Columns>(c, phase);
            break;
    }
}

// Registers are given out to groups of four warps. Those that compute take what the one with the
// copying warp does not need.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
inline constexpr int kBlockThreads = kStepThreads + 128;
__device__ __forceinline__ void give_up_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 56;");
}
__device__ __forceinline__ void take_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 224;");
}
#else
inline constexpr int kBlockThreads = kStepThreads + 128;
__device__ __forceinline__ void give_up_registers() {}
__device__ __forceinline__ void take_registers() {}
#endif

template <int Columns>
__global__ void __launch_bounds__(kBlockThreads, 1)
    step_kernel(const __grid_constant__ StepArguments args) {
    StepContext c(args);
    c.copy_pass();
    if (threadIdx.x == 0) {
        for (int i = 0; i < args.memory.n_slots; ++i) {
            init_barrier(c.full(i), kCopyArrivals);
            init_barrier(c.empty(i), kStepWarps);
        }
        announce_barriers();
        c.begin_chain();
    }
    __syncthreads();
    if (c.warp >= kStepWarps) {
        give_up_registers();
        if (c.warp == kStepWarps) {
            WeightCopies copies;
            copy_all_weights(c, copies);
            if (args.pass.n_steps > 1) {
                copies.finish(c);
            }
        }
    } else {
        take_registers();
        for (c.step = 0; c.step < args.pass.n_steps && !c.has_ended(); ++c.step) {
            for (int i = 0; i < args.pass.n_phases; ++i) {
                c.find_thread();
                const CudaPhase& phase = c.phase(i);
                run_phase<Columns>(c, phase);
                if (phase.waits) {
                    c.wait_for_blocks();
                } else {
                    sync_warps();
                }
            }
        }
        c.end_chain();
        c.leave();
    }
}

template <int Columns>
void start(const StepPlan& plan, const StepArguments& args, cudaStream_t stream) {
    allow_shared_memory<step_kernel<Columns>>(static_cast<std::size_t>(args.memory.end));
    step_kernel<Columns><<<static_cast<unsigned>(plan.n_blocks), kBlockThreads,
                           static_cast<std::size_t>(args.memory.end), stream>>>(args);
    check_cuda(cudaGetLastError(), "starting a pass");
}

}  // namespace

StepPlan plan_step(const CudaDevice& device, const StepNeeds& needs) {
    return {.n_blocks = device.n_processors,
            .shared_bytes = device.shared_bytes,
            .max_rows = max_step_rows(needs, device.shared_bytes),
            .needs = needs};
}

void run_step(const StepPlan& plan,
              const CudaShape& shape,
              const CudaBuffers& buffers,
              const CudaPassData& pass,
              const CudaStream& stream) {
    const int columns = step_stride(pass.n_rows);
    const int room = static_cast<int>(plan.shared_bytes) - kStaticStepBytes;
    StepMemory memory = divide_memory(plan.needs, room, pass.n_shared_bytes, columns);
    if (memory.end > room) {
        fail("GPU: expected ", memory.end, " bytes of shared memory for a pass of ", pass.n_rows,
             " rows, found ", room);
    }
    memory.max_copies =
        plan.max_copies > 0 ? std::min(plan.max_copies, memory.n_slots) : memory.n_slots;
    const StepArguments args{shape, buffers, pass, memory};
    auto* handle = static_cast<cudaStream_t>(stream.handle());
    switch (columns) {
        case 1:
            start<1>(plan, args, handle);
            break;
        case 8:
            start<8>(plan, args, handle);
            break;
        default:
            start<16>(plan, args, handle);
            break;
    }
}

}  // namespace knap

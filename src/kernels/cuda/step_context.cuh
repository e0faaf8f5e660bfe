// What the parts of the step kernel share: its arguments, its shared memory, and how its blocks and
// warps wait for each other.
//
// Eight warps of a block compute; a ninth copies weights to shared memory ahead of them, through a
// ring of slots, over the borders of phases. Weights never change, so it need not wait for anybody
// but those who free the slots.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/pass.h"
#include "kernels/cuda/step_memory.h"
#include "kernels/cuda/strips.h"

namespace knap {

inline constexpr int kStepThreads = 32 * kStepWarps;

// All of the shared memory. Everything in it is addressed from here, by offsets: through a pointer
// that came from elsewhere, the compiler would not know which memory it is.
extern __shared__ __align__(128) std::uint8_t step_shared[];

struct StepArguments {
    CudaShape shape;
    CudaBuffers buffers;
    CudaPassData pass;
    StepMemory memory;
};

// Of the eight warps that compute.
__device__ __forceinline__ void sync_warps() {
    asm volatile("bar.sync 1, %0;" ::"n"(kStepThreads) : "memory");
}

// The position in the ring of slots: everybody walks through it in the same order.
struct RingPosition {
    int slot = 0;
    unsigned parity = 0;

    __device__ void advance(int n_slots) {
        if (++slot == n_slots) {
            slot = 0;
            parity ^= 1;
        }
    }
};

struct StepContext {
    const StepArguments& args;
    const CudaPassData& pass;
    int warp = 0;
    int lane = 0;
    int thread = 0;
    int step = 0;  // of a chain
    RingPosition ring{};
    unsigned n_barriers = 0;

    __device__ explicit StepContext(const StepArguments& arguments)
        : args(arguments), pass(arguments.pass) {
        find_thread();
    }

    // Before every phase: what follows from it should not stay in registers from one to the next.
    __device__ void find_thread() {
        thread = static_cast<int>(threadIdx.x);
        forget(thread);
        warp = thread / 32;
        lane = thread % 32;
    }

    // By all threads of the block, before they go different ways.
    __device__ void copy_pass() {
        const auto* from = reinterpret_cast<const uint4*>(pass.phases);
        const int n_words = (static_cast<int>(pass.n_shared_bytes) + 15) / 16;
        for (int i = thread; i < n_words; i += static_cast<int>(blockDim.x)) {
            reinterpret_cast<uint4*>(step_shared)[i] = __ldg(from + i);
        }
    }

    // The block's own copy of an array of the pass: of any but pages and logit rows.
    template <typename T>
    __device__ const T* own(const T* array) const {
        const auto* from = reinterpret_cast<const std::uint8_t*>(pass.phases);
        return reinterpret_cast<const T*>(
            step_shared + static_cast<int>(reinterpret_cast<const std::uint8_t*>(array) - from));
    }
    __device__ const CudaPhase& phase(int i) const { return own(pass.phases)[i]; }

    __device__ std::uint64_t* full(int slot) const {  // copies have arrived
        return reinterpret_cast<std::uint64_t*>(step_shared + args.memory.barriers) + slot;
    }
    __device__ std::uint64_t* empty(int slot) const {  // all warps have read
        return full(args.memory.n_slots + slot);
    }
    __device__ std::uint8_t* slot(int i) const {
        return step_shared + args.memory.slots + i * args.memory.slot_bytes;
    }
    __device__ std::uint8_t* region() const { return step_shared + args.memory.region; }
    __device__ float* sums() const {  // [buffer][warp][strip][16][columns]
        return reinterpret_cast<float*>(step_shared + args.memory.sums);
    }
    __device__ float* factors() const {  // [columns] of the norm
        return reinterpret_cast<float*>(step_shared + args.memory.factors);
    }

    // --- the end of a chain, which may come before its last step ---
    __device__ volatile int* is_over() const {
        return reinterpret_cast<volatile int*>(step_shared + args.memory.is_over);
    }
    // By one thread of every block, before any phase.
    __device__ void begin_chain() const {
        *is_over() = 0;
        if (blockIdx.x == 0) {
            *args.buffers.n_done = 0;
        }
    }
    // Whether it ended with the step before this one: the same for all blocks, which have waited
    // for the one that decided.
    __device__ bool has_ended() const { return step > 0 && __ldcg(args.buffers.n_done) != 0; }
    // Tells the warp that copies weights.
    __device__ void end_chain() const {
        if (thread == 0) {
            *is_over() = 1;
        }
    }

    __device__ bool is_chain() const { return pass.n_steps > 1; }
    // The row of the pass that column `column` is: its token, place and rotation.
    __device__ int row_of(int column) const { return is_chain() ? step : column; }

    // All blocks have finished what is before this. What they wrote can be read past the first
    // cache (__ldcg).
    __device__ void wait_for_blocks() {
        ++n_barriers;
        sync_warps();
        if (thread == 0) {
            add_release(args.buffers.barrier, 1);
            const unsigned target = n_barriers * gridDim.x;
            while (load_relaxed(args.buffers.barrier) < target) {
            }
            acquire_after_loads();
        }
        sync_warps();
    }

    // The last block to leave sets the barrier up for the next kernel.
    __device__ void leave() {
        sync_warps();
        if (thread == 0 && atomicAdd(args.buffers.barrier + 1, 1u) == gridDim.x - 1) {
            args.buffers.barrier[0] = 0;
            args.buffers.barrier[1] = 0;
        }
    }
};

// How a phase's product is cut into items: pairs of strips that a block multiplies, one pair after
// the other.
struct ProductItems {
    int n_items = 0;
    int n_pairs = 1;  // of an item

    __device__ explicit ProductItems(const CudaPhase& phase) {
        switch (phase.op) {
            case CudaPhase::Op::heads:
                n_items =
                    phase.parts[0].n_strips + phase.parts[1].n_strips + phase.parts[2].n_strips;
                break;
            case CudaPhase::Op::gate:
                n_items = phase.parts[0].n_strips / 2;
                n_pairs = 2;
                break;
            case CudaPhase::Op::add:
            case CudaPhase::Op::head:
                n_items = (phase.parts[0].n_strips + 1) / 2;
                break;
            default:
                break;
        }
    }
};

// Sizes of types that are known only at run time: strip_unit() and copied_bytes() divide and
// branch, which takes long once for every pair of strips.
struct TypeSizes {
    int unit_bytes;
    int unit64;  // 64 inputs each
    int copied_bytes;
};
struct TypeTable {
    TypeSizes of[GGML_TYPE_COUNT];

    constexpr TypeTable() : of{} {
        for (int i = 0; i < GGML_TYPE_COUNT; ++i) {
            const auto type = static_cast<ggml_type>(i);
            of[i] = {strip_unit(type).n_bytes, strip_unit(type).n_inputs / 64, copied_bytes(type)};
        }
    }
};
static __constant__ const TypeTable kTypeTable;

// Two strips of a type, or one.
struct StripPair {
    const std::uint8_t* strips[2];
    int n_strips;
    int n_units;       // of each
    int n_bytes;       // of each
    int n64;           // inputs, 64 each
    int copied_bytes;  // at once
    ggml_type type;
};

__device__ inline const CudaMatrix& heads_part(const CudaPhase& phase, int& strip) {
    int part = 0;
    while (part < 2 && strip >= phase.parts[part].n_strips) {
        strip -= phase.parts[part].n_strips;
        ++part;
    }
    return phase.parts[part];
}

// Neighbours in a matrix, the last of which may be alone. Of heads, strip `item` and the one that
// the block has next, if it has the same type.
__device__ __forceinline__ StripPair strip_pair(const CudaPhase& phase, int item, int pair) {
    const bool is_heads = phase.op == CudaPhase::Op::heads;
    int strip = is_heads ? item : 2 * item;
    const CudaMatrix& matrix = is_heads ? heads_part(phase, strip) : phase.parts[pair];
    const TypeSizes sizes = kTypeTable.of[matrix.type];
    const int n_bytes = matrix.n_units * sizes.unit_bytes;
    StripPair strips;
    strips.strips[0] = matrix.strips + static_cast<std::int64_t>(strip) * n_bytes;
    strips.strips[1] = strips.strips[0] + n_bytes;
    strips.n_strips = strip + 1 < matrix.n_strips ? 2 : 1;
    strips.n_units = matrix.n_units;
    strips.n_bytes = n_bytes;
    strips.n64 = matrix.n_units * sizes.unit64;
    strips.copied_bytes = sizes.copied_bytes;
    strips.type = static_cast<ggml_type>(matrix.type);
    if (is_heads) {
        int next = item + static_cast<int>(gridDim.x);
        const CudaMatrix& other = heads_part(phase, next);
        strips.strips[1] = other.strips + static_cast<std::int64_t>(next) * n_bytes;
        strips.n_strips = next < other.n_strips && other.type == matrix.type ? 2 : 1;
    }
    return strips;
}

// The item that a block has after this one.
__device__ __forceinline__ int next_item(const CudaPhase& phase, const StripPair& last, int item) {
    const int n = phase.op == CudaPhase::Op::heads ? last.n_strips : 1;
    return item + n * static_cast<int>(gridDim.x);
}

}  // namespace knap

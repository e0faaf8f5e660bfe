// Instructions that C++ has no words for: tensor cores, barriers in shared memory, copies that run
// by themselves, and the order of memory accesses between blocks.
#pragma once

#include <cstdint>

#include <cuda_fp16.h>

namespace knap {

// Adds sums of signed weights times signed inputs: 16 rows, 8 columns, 16 inputs.
__device__ __forceinline__ void mma_s8_half(int (&c)[4],
                                            std::uint32_t a0,
                                            std::uint32_t a1,
                                            std::uint32_t b) {
    asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 "
        "{%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a0), "r"(a1), "r"(b));
}

// Sums of signed, or unsigned, weights times signed inputs: 16 rows, 8 columns, 32 inputs. Every
// sum begins at `start`: the fragment of it serves all of them.
template <bool IsSigned>
__device__ __forceinline__ void mma_s8_onto(int (&d)[4],
                                            const std::uint32_t (&a)[4],
                                            std::uint32_t b0,
                                            std::uint32_t b1,
                                            const int (&start)[4]) {
    if constexpr (IsSigned) {
        asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
            "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%10,%11,%12,%13};"
            : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "r"(start[0]),
              "r"(start[1]), "r"(start[2]), "r"(start[3]));
    } else {
        asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 "
            "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%10,%11,%12,%13};"
            : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "r"(start[0]),
              "r"(start[1]), "r"(start[2]), "r"(start[3]));
    }
}

// The same of signed weights over 16 inputs.
__device__ __forceinline__ void mma_s8_half_onto(
    int (&d)[4], std::uint32_t a0, std::uint32_t a1, std::uint32_t b, const int (&start)[4]) {
    asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 "
        "{%0,%1,%2,%3},{%4,%5},{%6},{%7,%8,%9,%10};"
        : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
        : "r"(a0), "r"(a1), "r"(b), "r"(start[0]), "r"(start[1]), "r"(start[2]), "r"(start[3]));
}

__device__ __forceinline__ void mma_f16(float (&c)[4],
                                        std::uint32_t a0,
                                        std::uint32_t a1,
                                        std::uint32_t a2,
                                        std::uint32_t a3,
                                        std::uint32_t b0,
                                        std::uint32_t b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

__device__ __forceinline__ void mma_bf16(float (&c)[4],
                                         std::uint32_t a0,
                                         std::uint32_t a1,
                                         std::uint32_t a2,
                                         std::uint32_t a3,
                                         std::uint32_t b0,
                                         std::uint32_t b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// --- registers ---

// Hides from the compiler that a number is the same in every turn of a loop. What follows from it
// is then found anew, with an instruction or two, and needs no registers in between.
__device__ __forceinline__ void forget(int& x) {
    asm volatile("" : "+r"(x));
}

// --- shared memory ---

__device__ __forceinline__ std::uint32_t shared_address(const void* p) {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ uint4 load_shared16(const void* p) {
    return *static_cast<const uint4*>(p);
}

__device__ __forceinline__ void copy16_async(void* to, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from)
                 : "memory");
}

// The same for 4, 8 or 16 bytes that are read again soon.
template <int Bytes>
__device__ __forceinline__ void copy_async(void* to, const void* from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(shared_address(to)), "l"(from),
                 "n"(Bytes)
                 : "memory");
}

__device__ __forceinline__ void wait_copies() {
    asm volatile("cp.async.commit_group;\ncp.async.wait_group 0;" ::: "memory");
}

// All copies that this thread began since the last group are one group.
__device__ __forceinline__ void end_copy_group() {
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Until all groups of this thread but the last N have arrived.
template <int N>
__device__ __forceinline__ void wait_copy_groups() {
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

// Four matrices of 8 by 8 halves. Lane i has the address of row i % 8 of matrix i / 8, 16 bytes. It
// gets columns 2 (i % 4) and the next of row i / 4 of each.
__device__ __forceinline__ void load_matrices(std::uint32_t (&m)[4], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(shared_address(row))
                 : "memory");
}

// Four matrices of 8 by 8 halves, transposed. Lane i has the address of row i % 8 of matrix i / 8,
// 16 bytes. It gets rows 2 (i % 4) and the next of column i / 4 of each.
__device__ __forceinline__ void load_transposed(std::uint32_t (&m)[4], const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(shared_address(row))
                 : "memory");
}

// --- barriers that copies arrive at ---

__device__ __forceinline__ void init_barrier(std::uint64_t* barrier, int n_arrivals) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(barrier)),
                 "r"(n_arrivals)
                 : "memory");
}

// Barriers that were set up are known to copies.
__device__ __forceinline__ void announce_barriers() {
#if __CUDA_ARCH__ >= 900
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#else
    __threadfence_block();
#endif
}

__device__ __forceinline__ void arrive(std::uint64_t* barrier) {
    asm volatile(
        "{.reg .b64 t;\nmbarrier.arrive.shared.b64 t, [%0];}" ::"r"(shared_address(barrier))
        : "memory");
}

__device__ __forceinline__ bool has_completed(std::uint64_t* barrier, unsigned parity) {
    std::uint32_t is_done;
    asm volatile(
#if __CUDA_ARCH__ >= 900
        "{.reg .pred p;\nmbarrier.try_wait.parity.shared.b64 p, [%1], %2;\nselp.b32 %0, 1, 0, p;}"
#else
        "{.reg .pred p;\nmbarrier.test_wait.parity.shared.b64 p, [%1], %2;\nselp.b32 %0, 1, 0, p;}"
#endif
        : "=r"(is_done)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
    return is_done != 0;
}

__device__ __forceinline__ void wait_for(std::uint64_t* barrier, unsigned parity) {
    while (!has_completed(barrier, parity)) {
    }
}

// The calling warp copies a multiple of 16 bytes to shared memory; the barrier, which counts
// kCopyArrivals, completes when they are there. They will not be read again soon.
#if __CUDA_ARCH__ >= 900
inline constexpr int kCopyArrivals = 1;
__device__ __forceinline__ void copy_weights(
    void* to, const void* from, int n_bytes, std::uint64_t* barrier, int lane) {
    if (lane == 0) {
        std::uint64_t policy;
        asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
        asm volatile("{.reg .b64 t;\nmbarrier.arrive.expect_tx.shared.b64 t, [%0], %1;}" ::"r"(
                         shared_address(barrier)),
                     "r"(n_bytes)
                     : "memory");
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
            "[%0], [%1], %2, [%3], %4;" ::"r"(shared_address(to)),
            "l"(from), "r"(n_bytes), "r"(shared_address(barrier)), "l"(policy)
            : "memory");
    }
}
#else
inline constexpr int kCopyArrivals = 32;
__device__ __forceinline__ void copy_weights(
    void* to, const void* from, int n_bytes, std::uint64_t* barrier, int lane) {
    for (int at = lane * 16; at < n_bytes; at += 32 * 16) {
        copy16_async(static_cast<char*>(to) + at, static_cast<const char*>(from) + at);
    }
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(shared_address(barrier))
                 : "memory");
}
#endif

// The same for copies of several lanes or warps, which share a barrier that counts
// kStageArrivals: it is told of all bytes first, or of the end by every lane.
#if __CUDA_ARCH__ >= 900
inline constexpr int kStageArrivals = 1;
__device__ __forceinline__ void expect_bytes(std::uint64_t* barrier, int n_bytes) {
    asm volatile("{.reg .b64 t;\nmbarrier.arrive.expect_tx.shared.b64 t, [%0], %1;}" ::"r"(
                     shared_address(barrier)),
                 "r"(n_bytes)
                 : "memory");
}
__device__ __forceinline__ void copy_bulk(void* to,
                                          const void* from,
                                          int n_bytes,
                                          std::uint64_t* barrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
        "[%3];" ::"r"(shared_address(to)),
        "l"(from), "r"(n_bytes), "r"(shared_address(barrier))
        : "memory");
}
#else
inline constexpr int kStageArrivals = 32;
__device__ __forceinline__ void arrive_after_copies(std::uint64_t* barrier) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(shared_address(barrier))
                 : "memory");
}
#endif

// --- between blocks ---

__device__ __forceinline__ void add_release(unsigned* counter, unsigned n) {
    asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(counter), "r"(n) : "memory");
}

__device__ __forceinline__ unsigned load_relaxed(const unsigned* counter) {
    unsigned value;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(counter) : "memory");
    return value;
}

// What was written before a value that this thread has loaded is visible from here on.
__device__ __forceinline__ void acquire_after_loads() {
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
}

}  // namespace knap

// Products by four warps at once, with the other factor in shared memory: instructions of compute
// capability 9.0 alone (wgmma). They sum 16 products as those of one warp do: tests compare them
// bit for bit (tests/cuda/cuda_stage_gpu_test.cpp).
#pragma once

#include <cstdint>

#include "kernels/cuda/mma.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define KNAP_HAS_GROUP_PRODUCTS 1
#else
#define KNAP_HAS_GROUP_PRODUCTS 0
#endif

namespace knap {

// What this thread wrote to shared memory, or brought there, is known to products of groups after
// the next barrier.
__device__ __forceinline__ void announce_writes() {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Before the first product of a batch, after its operands are in registers.
__device__ __forceinline__ void begin_group_products() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

// Until all products are done.
__device__ __forceinline__ void finish_group_products() {
    asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
}

// Columns of 64 halves, 128 bytes each, in places of halves_place(). The address is a multiple of
// 1024.
__device__ __forceinline__ std::uint64_t describe_columns(const void* columns) {
    constexpr std::uint64_t kEightColumns = 1024 / 16;
    constexpr std::uint64_t kSwizzle128 = 1;
    return (shared_address(columns) & 0x3FFFF) >> 4 | std::uint64_t{1} << 16 | kEightColumns << 32 |
           kSwizzle128 << 62;
}

// Sums of 64 rows, 128 columns and 16 inputs, the `step`th 16 of the columns': a warp has 16 rows,
// in the places of mma_f16() for each eight columns. `adds`: to `d`, else in its place.
template <bool IsBf16>
__device__ __forceinline__ void multiply_group(
    float (&d)[16][4], const uint4& a, std::uint64_t columns, int step, bool adds) {
    const std::uint64_t b = columns + static_cast<std::uint64_t>(2 * step);
#define KNAP_GROUP_PRODUCT(TYPE)                                                          \
    asm volatile(                                                                         \
        "{.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n"                                        \
        "wgmma.mma_async.sync.aligned.m64n128k16.f32." TYPE "." TYPE                      \
        " {"                                                                              \
        "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"                          \
        "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"                \
        "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"                \
        "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63},"               \
        " {%64,%65,%66,%67}, %68, p, 1, 1, 0;}"                                           \
        : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]), "+f"(d[1][0]),      \
          "+f"(d[1][1]), "+f"(d[1][2]), "+f"(d[1][3]), "+f"(d[2][0]), "+f"(d[2][1]),      \
          "+f"(d[2][2]), "+f"(d[2][3]), "+f"(d[3][0]), "+f"(d[3][1]), "+f"(d[3][2]),      \
          "+f"(d[3][3]), "+f"(d[4][0]), "+f"(d[4][1]), "+f"(d[4][2]), "+f"(d[4][3]),      \
          "+f"(d[5][0]), "+f"(d[5][1]), "+f"(d[5][2]), "+f"(d[5][3]), "+f"(d[6][0]),      \
          "+f"(d[6][1]), "+f"(d[6][2]), "+f"(d[6][3]), "+f"(d[7][0]), "+f"(d[7][1]),      \
          "+f"(d[7][2]), "+f"(d[7][3]), "+f"(d[8][0]), "+f"(d[8][1]), "+f"(d[8][2]),      \
          "+f"(d[8][3]), "+f"(d[9][0]), "+f"(d[9][1]), "+f"(d[9][2]), "+f"(d[9][3]),      \
          "+f"(d[10][0]), "+f"(d[10][1]), "+f"(d[10][2]), "+f"(d[10][3]), "+f"(d[11][0]), \
          "+f"(d[11][1]), "+f"(d[11][2]), "+f"(d[11][3]), "+f"(d[12][0]), "+f"(d[12][1]), \
          "+f"(d[12][2]), "+f"(d[12][3]), "+f"(d[13][0]), "+f"(d[13][1]), "+f"(d[13][2]), \
          "+f"(d[13][3]), "+f"(d[14][0]), "+f"(d[14][1]), "+f"(d[14][2]), "+f"(d[14][3]), \
          "+f"(d[15][0]), "+f"(d[15][1]), "+f"(d[15][2]), "+f"(d[15][3])                  \
        : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(b), "r"(static_cast<int>(adds)))
    if constexpr (IsBf16) {
        KNAP_GROUP_PRODUCT("bf16");
    } else {
        KNAP_GROUP_PRODUCT("f16");
    }
#undef KNAP_GROUP_PRODUCT
}

// --- attention: tiles of tile_place() ---

// Queries or keys, rows by channels: the `step`th 16 channels.
__device__ __forceinline__ std::uint64_t describe_rows(const void* tile, int n_rows, int step) {
    return describe_columns(tile) +
           static_cast<std::uint64_t>((step / 4 * n_rows * 128 + step % 4 * 32) / 16);
}

// Values, 16 positions from `first` on by channels: blocks of 64 channels are `n_rows` rows apart.
__device__ __forceinline__ std::uint64_t describe_values(const void* tile, int n_rows, int first) {
    const std::uint64_t columns =
        describe_columns(tile) + static_cast<std::uint64_t>(first * 128 / 16);
    constexpr std::uint64_t kOffset = std::uint64_t{0x3FFF} << 16;
    return (columns & ~kOffset) | static_cast<std::uint64_t>(n_rows * 128 / 16) << 16;
}

// Scores of 64 queries and 32 keys: sums over 16 channels, added to `d` or in its place. A warp has
// 16 queries, in the places of mma_f16() for each eight keys.
__device__ __forceinline__ void score_group(float (&d)[4][4],
                                            std::uint64_t queries,
                                            std::uint64_t keys,
                                            bool adds) {
    asm volatile(
        "{.reg .pred p;\nsetp.ne.b32 p, %18, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {"
        "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, %16, %17, p, 1, 1, 0, 0;}"
        : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]), "+f"(d[1][0]), "+f"(d[1][1]),
          "+f"(d[1][2]), "+f"(d[1][3]), "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3]),
          "+f"(d[3][0]), "+f"(d[3][1]), "+f"(d[3][2]), "+f"(d[3][3])
        : "l"(queries), "l"(keys), "r"(static_cast<int>(adds)));
}

// The values of 16 positions, times their weights: added to the channels of 64 queries, or in their
// place.
__device__ __forceinline__ void sum_group_values(float (&d)[8][4],
                                                 const std::uint32_t (&a)[4],
                                                 std::uint64_t values,
                                                 bool adds) {
    asm volatile(
        "{.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {"
        "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
        "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, "
        "{%32,%33,%34,%35}, %36, p, 1, 1, 1;}"
        : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]), "+f"(d[1][0]), "+f"(d[1][1]),
          "+f"(d[1][2]), "+f"(d[1][3]), "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3]),
          "+f"(d[3][0]), "+f"(d[3][1]), "+f"(d[3][2]), "+f"(d[3][3]), "+f"(d[4][0]), "+f"(d[4][1]),
          "+f"(d[4][2]), "+f"(d[4][3]), "+f"(d[5][0]), "+f"(d[5][1]), "+f"(d[5][2]), "+f"(d[5][3]),
          "+f"(d[6][0]), "+f"(d[6][1]), "+f"(d[6][2]), "+f"(d[6][3]), "+f"(d[7][0]), "+f"(d[7][1]),
          "+f"(d[7][2]), "+f"(d[7][3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(values), "r"(static_cast<int>(adds)));
}

__device__ __forceinline__ void sum_group_values(float (&d)[12][4],
                                                 const std::uint32_t (&a)[4],
                                                 std::uint64_t values,
                                                 bool adds) {
    asm volatile(
        "{.reg .pred p;\nsetp.ne.b32 p, %53, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n96k16.f32.f16.f16 {"
        "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
        "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
        "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47}, "
        "{%48,%49,%50,%51}, %52, p, 1, 1, 1;}"
        : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]), "+f"(d[1][0]), "+f"(d[1][1]),
          "+f"(d[1][2]), "+f"(d[1][3]), "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3]),
          "+f"(d[3][0]), "+f"(d[3][1]), "+f"(d[3][2]), "+f"(d[3][3]), "+f"(d[4][0]), "+f"(d[4][1]),
          "+f"(d[4][2]), "+f"(d[4][3]), "+f"(d[5][0]), "+f"(d[5][1]), "+f"(d[5][2]), "+f"(d[5][3]),
          "+f"(d[6][0]), "+f"(d[6][1]), "+f"(d[6][2]), "+f"(d[6][3]), "+f"(d[7][0]), "+f"(d[7][1]),
          "+f"(d[7][2]), "+f"(d[7][3]), "+f"(d[8][0]), "+f"(d[8][1]), "+f"(d[8][2]), "+f"(d[8][3]),
          "+f"(d[9][0]), "+f"(d[9][1]), "+f"(d[9][2]), "+f"(d[9][3]), "+f"(d[10][0]),
          "+f"(d[10][1]), "+f"(d[10][2]), "+f"(d[10][3]), "+f"(d[11][0]), "+f"(d[11][1]),
          "+f"(d[11][2]), "+f"(d[11][3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(values), "r"(static_cast<int>(adds)));
}

__device__ __forceinline__ void sum_group_values(float (&d)[16][4],
                                                 const std::uint32_t (&a)[4],
                                                 std::uint64_t values,
                                                 bool adds) {
    asm volatile(
        "{.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
        "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
        "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"
        "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,"
        "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}, "
        "{%64,%65,%66,%67}, %68, p, 1, 1, 1;}"
        : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]), "+f"(d[1][0]), "+f"(d[1][1]),
          "+f"(d[1][2]), "+f"(d[1][3]), "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3]),
          "+f"(d[3][0]), "+f"(d[3][1]), "+f"(d[3][2]), "+f"(d[3][3]), "+f"(d[4][0]), "+f"(d[4][1]),
          "+f"(d[4][2]), "+f"(d[4][3]), "+f"(d[5][0]), "+f"(d[5][1]), "+f"(d[5][2]), "+f"(d[5][3]),
          "+f"(d[6][0]), "+f"(d[6][1]), "+f"(d[6][2]), "+f"(d[6][3]), "+f"(d[7][0]), "+f"(d[7][1]),
          "+f"(d[7][2]), "+f"(d[7][3]), "+f"(d[8][0]), "+f"(d[8][1]), "+f"(d[8][2]), "+f"(d[8][3]),
          "+f"(d[9][0]), "+f"(d[9][1]), "+f"(d[9][2]), "+f"(d[9][3]), "+f"(d[10][0]),
          "+f"(d[10][1]), "+f"(d[10][2]), "+f"(d[10][3]), "+f"(d[11][0]), "+f"(d[11][1]),
          "+f"(d[11][2]), "+f"(d[11][3]), "+f"(d[12][0]), "+f"(d[12][1]), "+f"(d[12][2]),
          "+f"(d[12][3]), "+f"(d[13][0]), "+f"(d[13][1]), "+f"(d[13][2]), "+f"(d[13][3]),
          "+f"(d[14][0]), "+f"(d[14][1]), "+f"(d[14][2]), "+f"(d[14][3]), "+f"(d[15][0]),
          "+f"(d[15][1]), "+f"(d[15][2]), "+f"(d[15][3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(values), "r"(static_cast<int>(adds)));
}

}  // namespace knap

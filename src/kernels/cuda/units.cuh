// Products of one unit of a strip (strips.h) with columns of inputs, by one warp.
//
// A block of 32 inputs is summed exactly, in integers. The sums of blocks are added in floats, in
// the order of inputs, one rounding each. So the numbers do not depend on how many columns there
// are, on their places, or on the instructions that sum a block.
//
// A lane gets the sums of rows g and g + 8 with columns 2 q and 2 q + 1 of each tile of eight
// columns, where g = lane / 4 and q = lane % 4. With one column only the first is kept.
#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/strips.h"

// Calls a macro with every type that has kernels: those of strip_unit().
#define KNAP_STRIP_TYPES(CALL) \
    CALL(GGML_TYPE_Q4_0)       \
    CALL(GGML_TYPE_Q4_1)       \
    CALL(GGML_TYPE_Q5_0)       \
    CALL(GGML_TYPE_Q5_1)       \
    CALL(GGML_TYPE_Q8_0)       \
    CALL(GGML_TYPE_MXFP4)      \
    CALL(GGML_TYPE_Q4_K)       \
    CALL(GGML_TYPE_Q5_K)       \
    CALL(GGML_TYPE_Q6_K)       \
    CALL(GGML_TYPE_F16)        \
    CALL(GGML_TYPE_BF16)

namespace knap {

// Sums of a lane, per tile: row g, columns 2 q and 2 q + 1; row g + 8, the same columns.
template <int Columns>
inline constexpr int kTiles = (Columns + 7) / 8;

template <int Columns>
struct Sums {
    float at[kTiles<Columns>][4];

    __device__ void clear() {
        for (auto& tile : at) {
            for (float& sum : tile) {
                sum = 0;
            }
        }
    }
};

// The inputs of a product in shared memory, from the first unit of 64 inputs on.
template <int Columns>
struct QuantisedInputs {
    const std::int8_t* codes;  // [n / 64][Columns][64]
    const float2* scales;      // [n / 32][Columns]
};

namespace unit {

inline constexpr int kMagicBits = 0x4B400000;  // of 12582912.0f: adding an integer to the bits adds
inline constexpr float kMagic = 12582912.0f;   // it to the number

template <int Type>
inline constexpr bool kIsSigned =
    Type == GGML_TYPE_Q4_0 || Type == GGML_TYPE_Q5_0 || Type == GGML_TYPE_Q8_0 ||
    Type == GGML_TYPE_Q6_K || Type == GGML_TYPE_MXFP4;
template <int Type>
inline constexpr bool kHasMinima = Type == GGML_TYPE_Q4_1 || Type == GGML_TYPE_Q5_1 ||
                                   Type == GGML_TYPE_Q4_K || Type == GGML_TYPE_Q5_K;
// Codes are multiplied by a power of two that leaves their sign in place. Sums are divided by it at
// their end: that rounds nothing.
constexpr float code_scale(int type) {
    return type == GGML_TYPE_Q4_0   ? 1.0f / 16
           : type == GGML_TYPE_Q5_0 ? 1.0f / 8
           : type == GGML_TYPE_Q6_K ? 1.0f / 4
                                    : 1.0f;
}
template <int Type>
inline constexpr int kParts = strip_unit(static_cast<ggml_type>(Type)).n_inputs / 64;
template <int Type>
inline constexpr int kLowBytes = Type == GGML_TYPE_Q8_0 ? 1024 : 512;
template <int Type>
inline constexpr int kHighBytes = Type == GGML_TYPE_Q6_K   ? 256
                                  : Type == GGML_TYPE_Q5_0 ? 128
                                  : Type == GGML_TYPE_Q5_1 ? 128
                                  : Type == GGML_TYPE_Q5_K ? 128
                                                           : 0;

// Four codes of MXFP4, from four nibbles.
__device__ __forceinline__ std::uint32_t look_up_mxfp4(std::uint32_t nibbles) {
    const std::uint32_t index = nibbles & 0x7777;
    const std::uint32_t positive = __byte_perm(0x03020100, 0x0C080604, index);
    const std::uint32_t negative = __byte_perm(0xFDFEFF00, 0xF4F8FAFC, index);
    return __byte_perm(positive, negative, 0x3210 | (nibbles & 0x8888) >> 1);
}

// The fragments of both blocks of 64 inputs, from their low and their high bits.
template <int Type>
__device__ __forceinline__ void load_codes_from(const std::uint8_t* low,
                                                const std::uint8_t* high,
                                                int lane,
                                                std::uint32_t (&a)[2][4]) {
    if constexpr (Type == GGML_TYPE_Q8_0) {
        for (int block = 0; block < 2; ++block) {
            const uint4 words = load_shared16(low + block * 512 + lane * 16);
            a[block][0] = words.x;
            a[block][1] = words.y;
            a[block][2] = words.z;
            a[block][3] = words.w;
        }
        return;
    }
    const uint4 loaded = load_shared16(low + lane * 16);
    const std::uint32_t words[4] = {loaded.x, loaded.y, loaded.z, loaded.w};
    if constexpr (Type == GGML_TYPE_Q4_0) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            a[0][j] = words[j] << 4 & 0xF0F0F0F0;
            a[1][j] = words[j] & 0xF0F0F0F0;
        }
    } else if constexpr (Type == GGML_TYPE_MXFP4) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            a[0][j] = look_up_mxfp4(words[j] & 0xFFFF);
            a[1][j] = look_up_mxfp4(words[j] >> 16);
        }
    } else if constexpr (Type == GGML_TYPE_Q4_1 || Type == GGML_TYPE_Q4_K) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            a[0][j] = words[j] & 0x0F0F0F0F;
            a[1][j] = words[j] >> 4 & 0x0F0F0F0F;
        }
    } else if constexpr (Type == GGML_TYPE_Q5_0) {
        const std::uint32_t bits = *reinterpret_cast<const std::uint32_t*>(high + lane * 4);
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            a[0][j] = (words[j] << 3 & 0x78787878) | (bits << (7 - j) & 0x80808080);
            a[1][j] = (words[j] >> 1 & 0x78787878) | (bits << (3 - j) & 0x80808080);
        }
    } else if constexpr (Type == GGML_TYPE_Q5_1 || Type == GGML_TYPE_Q5_K) {
        const std::uint32_t bits = *reinterpret_cast<const std::uint32_t*>(high + lane * 4);
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            a[0][j] = (words[j] & 0x0F0F0F0F) | (bits << (4 - j) & 0x10101010);
            a[1][j] = (words[j] >> 4 & 0x0F0F0F0F) | (bits >> j & 0x10101010);
        }
    } else {  // Q6_K
        const uint2 bits = *reinterpret_cast<const uint2*>(high + lane * 8);
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            a[0][j] = (words[j] << 2 & 0x3C3C3C3C) | (bits.x << (6 - 2 * j) & 0xC0C0C0C0);
            a[1][j] = (words[j] >> 2 & 0x3C3C3C3C) | (bits.y << (6 - 2 * j) & 0xC0C0C0C0);
        }
    }
}

template <int Type>
__device__ __forceinline__ void load_codes(const std::uint8_t* unit,
                                           int part,
                                           int lane,
                                           std::uint32_t (&a)[2][4]) {
    load_codes_from<Type>(unit + part * kLowBytes<Type>,
                          unit + kParts<Type> * kLowBytes<Type> + part * kHighBytes<Type>, lane, a);
}

// Scales, and minima if there are any, of both blocks for rows g and g + 8.
struct RowScales {
    float d[2][2];  // [block][row]
    float m[2][2];
};

__device__ __forceinline__ float half_to_float(std::uint32_t bits) {
    return __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
}

// 2^(e - 128), as ggml computes it for MXFP4.
__device__ __forceinline__ float mxfp4_scale(std::uint32_t e) {
    return __uint_as_float(e < 2 ? 0x00200000u << e : (e - 1) << 23);
}

// `at` is where the scales of a unit begin.
template <int Type>
__device__ __forceinline__ void load_scales_from(const std::uint8_t* at,
                                                 int part,
                                                 int lane,
                                                 RowScales& scales) {
    const int g = lane / 4;
    if constexpr (Type == GGML_TYPE_Q4_K || Type == GGML_TYPE_Q5_K) {
#pragma unroll
        for (int row = 0; row < 2; ++row) {
            const uint4 words = load_shared16(at + (g * 2 + row) * 16);
            const float d = half_to_float(words.x & 0xFFFF);
            const float dmin = half_to_float(words.x >> 16);
            // The 24 bits of this part, out of 96.
            const std::uint32_t bits = part == 0   ? words.y
                                       : part == 1 ? __funnelshift_r(words.y, words.z, 24)
                                       : part == 2 ? __funnelshift_r(words.z, words.w, 16)
                                                   : words.w >> 8;
            scales.d[0][row] = d * static_cast<float>(bits & 63);
            scales.d[1][row] = d * static_cast<float>(bits >> 6 & 63);
            scales.m[0][row] = -dmin * static_cast<float>(bits >> 12 & 63);
            scales.m[1][row] = -dmin * static_cast<float>(bits >> 18 & 63);
        }
    } else if constexpr (Type == GGML_TYPE_MXFP4) {
        const std::uint32_t bytes = *reinterpret_cast<const std::uint32_t*>(at + g * 4);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            scales.d[i / 2][i % 2] = mxfp4_scale(bytes >> (8 * i) & 255);
        }
    } else {
        const uint2 d = *reinterpret_cast<const uint2*>(at + g * 8);
        scales.d[0][0] = half_to_float(d.x & 0xFFFF);
        scales.d[0][1] = half_to_float(d.x >> 16);
        scales.d[1][0] = half_to_float(d.y & 0xFFFF);
        scales.d[1][1] = half_to_float(d.y >> 16);
        if constexpr (kHasMinima<Type>) {
            const uint2 m = *reinterpret_cast<const uint2*>(at + 64 + g * 8);
            scales.m[0][0] = half_to_float(m.x & 0xFFFF);
            scales.m[0][1] = half_to_float(m.x >> 16);
            scales.m[1][0] = half_to_float(m.y & 0xFFFF);
            scales.m[1][1] = half_to_float(m.y >> 16);
        }
    }
}

template <int Type>
__device__ __forceinline__ void load_scales(const std::uint8_t* unit,
                                            int part,
                                            int lane,
                                            RowScales& scales) {
    load_scales_from<Type>(unit + kParts<Type> * (kLowBytes<Type> + kHighBytes<Type>), part, lane,
                           scales);
}

// Q6_K has a scale for each 16 inputs: sums of halves are joined in integers.
__device__ __forceinline__ void sum_halves(const std::uint8_t* unit,
                                           int part,
                                           int block,
                                           int lane,
                                           const std::uint32_t (&a)[4],
                                           std::uint32_t b0,
                                           std::uint32_t b1,
                                           float (&sums)[4]) {
    const int g = lane / 4;
    const std::uint8_t* scales = unit + 4 * (512 + 256) + part * 64;
    const auto* both = reinterpret_cast<const std::uint16_t*>(scales + g * 8 + block * 2);
    int first[4] = {0, 0, 0, 0};
    int second[4] = {0, 0, 0, 0};
    mma_s8_half(first, a[0], a[1], b0);
    mma_s8_half(second, a[2], a[3], b1);
#pragma unroll
    for (int row = 0; row < 2; ++row) {
        const int pair = both[row * 2];
        const int s0 = static_cast<std::int8_t>(pair & 255);
        const int s1 = static_cast<std::int8_t>(pair >> 8);
#pragma unroll
        for (int i = 2 * row; i < 2 * row + 2; ++i) {
            // Multiples of four below 2^26: exact as floats.
            sums[i] = static_cast<float>(first[i] * s0 + second[i] * s1);
        }
    }
}

}  // namespace unit

// Adds the products of a unit in shared memory with inputs from `first` on, in units of 64. They
// are too large by 1 / unit::code_scale().
template <int Type, int Columns>
__device__ __forceinline__ void multiply_unit(const std::uint8_t* unit,
                                              const QuantisedInputs<Columns>& inputs,
                                              int first,
                                              int lane,
                                              Sums<Columns>& sums) {
    const int g = lane / 4;
    const int q = lane % 4;
    constexpr bool kIsOne = Columns == 1;
    const int magic[4] = {unit::kMagicBits, unit::kMagicBits, unit::kMagicBits, unit::kMagicBits};
#pragma unroll
    for (int part = 0; part < unit::kParts<Type>; ++part) {
        std::uint32_t a[2][4];
        unit::load_codes<Type>(unit, part, lane, a);
        float4 one;  // both blocks' scales of the only column
        if constexpr (kIsOne) {
            one = *reinterpret_cast<const float4*>(inputs.scales + 2 * (first + part));
        }
        unit::RowScales scales;
        if constexpr (Type == GGML_TYPE_Q6_K) {
            const std::uint32_t d =
                *reinterpret_cast<const std::uint32_t*>(unit + 4 * (512 + 256) + 256 + g * 4);
            scales.d[0][0] = scales.d[1][0] = unit::half_to_float(d & 0xFFFF);
            scales.d[0][1] = scales.d[1][1] = unit::half_to_float(d >> 16);
        } else {
            unit::load_scales<Type>(unit, part, lane, scales);
        }
#pragma unroll
        for (int tile = 0; tile < kTiles<Columns>; ++tile) {
            const int column = kIsOne ? 0 : 8 * tile + g;
            const uint4 b =
                load_shared16(inputs.codes + ((first + part) * Columns + column) * 64 + q * 16);
#pragma unroll
            for (int block = 0; block < 2; ++block) {
                const std::uint32_t b0 = block == 0 ? b.x : b.z;
                const std::uint32_t b1 = block == 0 ? b.y : b.w;
                float exact[4];
                if constexpr (Type == GGML_TYPE_Q6_K) {
                    unit::sum_halves(unit, part, block, lane, a[block], b0, b1, exact);
                } else {
                    int c[4];
                    mma_s8_onto<unit::kIsSigned<Type>>(c, a[block], b0, b1, magic);
#pragma unroll
                    for (int i = 0; i < 4; ++i) {
                        exact[i] = __int_as_float(c[i]) - unit::kMagic;
                    }
                }
                const float2* at = inputs.scales + (2 * (first + part) + block) * Columns +
                                   (kIsOne ? 0 : 8 * tile + 2 * q);
                float4 by;
                if constexpr (kIsOne) {
                    by = block == 0 ? make_float4(one.x, one.y, 0, 0)
                                    : make_float4(one.z, one.w, 0, 0);
                } else {
                    by = *reinterpret_cast<const float4*>(at);
                }
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    if (kIsOne && i % 2 == 1) {
                        continue;
                    }
                    const int row = i / 2;
                    float& sum = sums.at[tile][i];
                    const float scale = __fmul_rn(scales.d[block][row], i % 2 == 0 ? by.x : by.z);
                    sum = __fmaf_rn(exact[i], scale, sum);
                    if constexpr (unit::kHasMinima<Type>) {
                        sum = __fmaf_rn(scales.m[block][row], i % 2 == 0 ? by.y : by.w, sum);
                    }
                }
            }
        }
    }
}

// The same for F16 and BF16: halves [n / 64][Columns][64] in the order of inputs.
template <int Type, int Columns>
__device__ __forceinline__ void multiply_halves(const std::uint8_t* unit,
                                                const std::uint16_t* inputs,
                                                int first,
                                                int lane,
                                                Sums<Columns>& sums) {
    const int g = lane / 4;
    const int q = lane % 4;
#pragma unroll
    for (int tile = 0; tile < kTiles<Columns>; ++tile) {
        const int column = Columns == 1 ? 0 : 8 * tile + g;
        const std::uint16_t* at = inputs + (first * Columns + column) * 64 + q * 16;
        const uint4 low = load_shared16(at);
        const uint4 high = load_shared16(at + 8);
        const std::uint32_t b[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
        for (int step = 0; step < 4; ++step) {
            const uint4 a = load_shared16(unit + step * 512 + lane * 16);
            if constexpr (Type == GGML_TYPE_F16) {
                mma_f16(sums.at[tile], a.x, a.y, a.z, a.w, b[2 * step], b[2 * step + 1]);
            } else {
                mma_bf16(sums.at[tile], a.x, a.y, a.z, a.w, b[2 * step], b[2 * step + 1]);
            }
        }
    }
}

// The weight of one row of a strip for input `input`: for looking up embeddings. `strip` may be in
// any memory.
__device__ inline float weight_at(const std::uint8_t* strip, int type, int row, int input) {
    const StripUnit geometry = strip_unit(static_cast<ggml_type>(type));
    const std::uint8_t* unit = strip + static_cast<std::size_t>(input / geometry.n_inputs) *
                                           static_cast<std::size_t>(geometry.n_bytes);
    const int within = input % geometry.n_inputs;
    const auto half_at = [](const std::uint8_t* p) {
        return unit::half_to_float(p[0] | p[1] << 8);
    };
    const int g = row % 8;
    const int side = row / 8;
    if (type == GGML_TYPE_F16 || type == GGML_TYPE_BF16) {
        const int q = within / 16;
        const int step = within % 16 / 4;
        const int j = within % 4 / 2 * 2 + side;
        const std::uint8_t* p = unit + step * 512 + (g * 4 + q) * 16 + j * 4 + within % 2 * 2;
        return type == GGML_TYPE_F16
                   ? half_at(p)
                   : __uint_as_float(static_cast<std::uint32_t>(p[0] | p[1] << 8) << 16);
    }
    const int part = within / 64;
    const int block = within % 64 / 32;
    const int j = within % 32 / 16 * 2 + side;
    const int q = within % 16 / 4;
    const int t = within % 4;
    const int lane = g * 4 + q;
    const int n_parts = geometry.n_inputs / 64;
    if (type == GGML_TYPE_Q8_0) {
        const auto code = static_cast<std::int8_t>(unit[block * 512 + lane * 16 + j * 4 + t]);
        return half_at(unit + 1024 + (g * 4 + block * 2 + side) * 2) * static_cast<float>(code);
    }
    if (type == GGML_TYPE_MXFP4) {
        const int nibble = unit[lane * 16 + j * 4 + block * 2 + t / 2] >> (t % 2 * 4) & 15;
        const auto code = static_cast<std::int8_t>(unit::look_up_mxfp4(nibble) & 255);
        return unit::mxfp4_scale(unit[512 + g * 4 + block * 2 + side]) * static_cast<float>(code);
    }
    const int low = unit[part * 512 + lane * 16 + j * 4 + t] >> (4 * block) & 15;
    const std::uint8_t* highs = unit + n_parts * 512;
    switch (type) {
        case GGML_TYPE_Q4_0:
            return half_at(highs + (g * 4 + block * 2 + side) * 2) *
                   static_cast<float>((low ^ 8) - 8);
        case GGML_TYPE_Q4_1: {
            const std::uint8_t* at = highs + (g * 4 + block * 2 + side) * 2;
            return __fmaf_rn(half_at(at), static_cast<float>(low), half_at(at + 64));
        }
        case GGML_TYPE_Q5_0:
        case GGML_TYPE_Q5_1: {
            const int code = low | (highs[lane * 4 + t] >> (4 * block + j) & 1) << 4;
            const std::uint8_t* at = highs + 128 + (g * 4 + block * 2 + side) * 2;
            return type == GGML_TYPE_Q5_0
                       ? half_at(at) * static_cast<float>((code ^ 16) - 16)
                       : __fmaf_rn(half_at(at), static_cast<float>(code), half_at(at + 64));
        }
        case GGML_TYPE_Q6_K: {
            const int code = low | (highs[part * 256 + lane * 8 + block * 4 + t] >> (2 * j) & 3)
                                       << 4;
            const std::uint8_t* scales = highs + 4 * 256;
            const auto scale = static_cast<std::int8_t>(
                scales[part * 64 + (g * 2 + side) * 4 + block * 2 + j / 2]);
            return half_at(scales + 256 + (g * 2 + side) * 2) *
                   static_cast<float>(scale * ((code ^ 32) - 32));
        }
        default: {  // Q4_K, Q5_K
            const bool has_high = type == GGML_TYPE_Q5_K;
            const int code =
                has_high ? low | (highs[part * 128 + lane * 4 + t] >> (4 * block + j) & 1) << 4
                         : low;
            const std::uint8_t* at = highs + (has_high ? 512 : 0) + (g * 2 + side) * 16;
            const std::uint8_t* three = at + 4 + 3 * part;
            const int bits = three[0] | three[1] << 8 | three[2] << 16;
            const float minimum =
                __fmul_rn(half_at(at + 2), static_cast<float>(bits >> (12 + 6 * block) & 63));
            return __fmaf_rn(half_at(at), static_cast<float>((bits >> (6 * block) & 63) * code),
                             -minimum);
        }
    }
}

}  // namespace knap

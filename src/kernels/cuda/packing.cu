#include <cuda_runtime.h>

#include "base/error.h"
#include "kernels/cuda/cuda_check.h"
#include "kernels/cuda/packing.h"
#include "kernels/cuda/strips.h"

namespace knap {
namespace {

// --- one number of a row as the file stores it ---

// Bytes of a block of the file, and its inputs.
struct FileBlock {
    int n_inputs;
    int n_bytes;
};

__host__ __device__ constexpr FileBlock file_block(int type) {
    switch (type) {
        case GGML_TYPE_Q4_0:
            return {32, 18};
        case GGML_TYPE_Q4_1:
            return {32, 20};
        case GGML_TYPE_Q5_0:
            return {32, 22};
        case GGML_TYPE_Q5_1:
            return {32, 24};
        case GGML_TYPE_Q8_0:
            return {32, 34};
        case GGML_TYPE_MXFP4:
            return {32, 17};
        case GGML_TYPE_Q4_K:
            return {256, 144};
        case GGML_TYPE_Q5_K:
            return {256, 176};
        case GGML_TYPE_Q6_K:
            return {256, 210};
        default:
            return {1, 2};
    }
}

// The code of input `i` of a block, unsigned; Q8_0's is signed.
template <int Type>
__device__ int code_at(const std::uint8_t* block, int i) {
    if constexpr (Type == GGML_TYPE_Q8_0) {
        return static_cast<std::int8_t>(block[2 + i]);
    } else if constexpr (Type == GGML_TYPE_Q4_K || Type == GGML_TYPE_Q5_K) {
        const int group = i / 64;
        const int shift = i % 64 / 32 * 4;
        const std::uint8_t* low = block + 16 + (Type == GGML_TYPE_Q5_K ? 32 : 0);
        int code = low[group * 32 + i % 32] >> shift & 15;
        if constexpr (Type == GGML_TYPE_Q5_K) {
            code |= (block[16 + i % 32] >> (i / 32) & 1) << 4;
        }
        return code;
    } else if constexpr (Type == GGML_TYPE_Q6_K) {
        const int half = i / 128;
        const int quarter = i % 128 / 32;
        const int l = i % 32;
        const int low = block[half * 64 + l + quarter % 2 * 32] >> (quarter / 2 * 4) & 15;
        const int high = block[128 + half * 32 + l] >> (2 * quarter) & 3;
        return low | high << 4;
    } else {
        constexpr int kCodes = Type == GGML_TYPE_Q4_0   ? 2
                               : Type == GGML_TYPE_Q4_1 ? 4
                               : Type == GGML_TYPE_Q5_0 ? 6
                               : Type == GGML_TYPE_Q5_1 ? 8
                                                        : 1;  // MXFP4
        int code = block[kCodes + i % 16] >> (i / 16 * 4) & 15;
        if constexpr (Type == GGML_TYPE_Q5_0 || Type == GGML_TYPE_Q5_1) {
            code |= (block[kCodes - 4 + i / 8] >> (i % 8) & 1) << 4;
        }
        return code;
    }
}

// Six bits of the scale (or minimum) of 32 inputs of Q4_K and Q5_K.
__device__ int six_bits(const std::uint8_t* scales, int block, bool is_minimum) {
    const int at = block % 4 + (is_minimum ? 4 : 0);
    if (block < 4) {
        return scales[at] & 63;
    }
    const int low = is_minimum ? scales[block % 4 + 8] >> 4 : scales[block % 4 + 8] & 15;
    return low | scales[at] >> 6 << 4;
}

// --- writing a unit ---

// The rows of a strip, as the file stores them.
struct FileStrip {
    const std::uint8_t* rows;
    std::size_t row_bytes;

    template <int Type>
    __device__ const std::uint8_t* block(int row, int input) const {
        constexpr FileBlock kBlock = file_block(Type);
        return rows + row * row_bytes +
               static_cast<std::size_t>(input / kBlock.n_inputs) * kBlock.n_bytes;
    }
    template <int Type>
    __device__ int code(int row, int input) const {
        return code_at<Type>(block<Type>(row, input), input % file_block(Type).n_inputs);
    }
};

constexpr bool is_signed(int type) {
    return type == GGML_TYPE_Q4_0 || type == GGML_TYPE_Q5_0 || type == GGML_TYPE_Q6_K;
}

// The low and high parts of 64 inputs, by one lane.
template <int Type>
__device__ void pack_codes(
    const FileStrip& strip, int first, int lane, std::uint8_t* low, std::uint8_t* high) {
    const int g = lane / 4;
    const int q = lane % 4;
    for (int j = 0; j < 4; ++j) {
        for (int t = 0; t < 4; ++t) {
            int codes[2];
            for (int block = 0; block < 2; ++block) {
                codes[block] = strip.code<Type>(g + 8 * (j % 2),
                                                first + 32 * block + 4 * q + t + 16 * (j / 2));
            }
            if constexpr (Type == GGML_TYPE_Q8_0) {
                for (int block = 0; block < 2; ++block) {
                    low[block * 512 + lane * 16 + j * 4 + t] =
                        static_cast<std::uint8_t>(codes[block]);
                }
                continue;
            }
            constexpr int kFlip = !is_signed(Type)         ? 0
                                  : Type == GGML_TYPE_Q4_0 ? 8
                                  : Type == GGML_TYPE_Q5_0 ? 16
                                                           : 32;
            codes[0] ^= kFlip;
            codes[1] ^= kFlip;
            if constexpr (Type == GGML_TYPE_MXFP4) {
                // Four nibbles in a row are looked up at once.
                std::uint8_t* word = low + lane * 16 + j * 4;
                for (int block = 0; block < 2; ++block) {
                    std::uint8_t& byte = word[block * 2 + t / 2];
                    byte = static_cast<std::uint8_t>(t % 2 == 0 ? codes[block]
                                                                : byte | codes[block] << 4);
                }
                continue;
            }
            low[lane * 16 + j * 4 + t] =
                static_cast<std::uint8_t>((codes[0] & 15) | (codes[1] & 15) << 4);
            if constexpr (Type == GGML_TYPE_Q5_0 || Type == GGML_TYPE_Q5_1 ||
                          Type == GGML_TYPE_Q5_K) {
                std::uint8_t& byte = high[lane * 4 + t];
                byte = static_cast<std::uint8_t>((j == 0 ? 0 : byte) | (codes[0] >> 4) << j |
                                                 (codes[1] >> 4) << (4 + j));
            } else if constexpr (Type == GGML_TYPE_Q6_K) {
                for (int block = 0; block < 2; ++block) {
                    std::uint8_t& byte = high[lane * 8 + block * 4 + t];
                    byte = static_cast<std::uint8_t>((j == 0 ? 0 : byte) | (codes[block] >> 4)
                                                                               << (2 * j));
                }
            }
        }
    }
}

__device__ void copy_half(std::uint8_t* to, const std::uint8_t* from) {
    to[0] = from[0];
    to[1] = from[1];
}

// The scales of a unit, by the first eight lanes: rows g and g + 8 each.
template <int Type>
__device__ void pack_scales(const FileStrip& strip, int first, int g, std::uint8_t* scales) {
    for (int side = 0; side < 2; ++side) {
        const int row = g + 8 * side;
        if constexpr (Type == GGML_TYPE_Q4_K || Type == GGML_TYPE_Q5_K) {
            const std::uint8_t* block = strip.block<Type>(row, first);
            std::uint8_t* to = scales + (g * 2 + side) * 16;
            copy_half(to, block);
            copy_half(to + 2, block + 2);
            for (int i = 0; i < 4; ++i) {
                const int bits = six_bits(block + 4, 2 * i, false) |
                                 six_bits(block + 4, 2 * i + 1, false) << 6 |
                                 six_bits(block + 4, 2 * i, true) << 12 |
                                 six_bits(block + 4, 2 * i + 1, true) << 18;
                for (int byte = 0; byte < 3; ++byte) {
                    to[4 + 3 * i + byte] = static_cast<std::uint8_t>(bits >> (8 * byte));
                }
            }
        } else if constexpr (Type == GGML_TYPE_Q6_K) {
            const std::uint8_t* block = strip.block<Type>(row, first);
            for (int i = 0; i < 16; ++i) {
                scales[i / 4 * 64 + (g * 2 + side) * 4 + i % 4] = block[192 + i];
            }
            copy_half(scales + 256 + (g * 2 + side) * 2, block + 208);
        } else {
            for (int i = 0; i < 2; ++i) {
                const std::uint8_t* block = strip.block<Type>(row, first + 32 * i);
                const int at = g * 4 + i * 2 + side;
                if constexpr (Type == GGML_TYPE_MXFP4) {
                    scales[at] = block[0];
                } else {
                    copy_half(scales + 2 * at, block);
                }
                if constexpr (Type == GGML_TYPE_Q4_1 || Type == GGML_TYPE_Q5_1) {
                    copy_half(scales + 64 + 2 * at, block + 2);
                }
            }
        }
    }
}

template <int Type>
__device__ void pack_halves(const FileStrip& strip, int first, int lane, std::uint8_t* to) {
    const int g = lane / 4;
    const int q = lane % 4;
    for (int s = 0; s < 4; ++s) {
        for (int j = 0; j < 4; ++j) {
            for (int h = 0; h < 2; ++h) {
                const int input = first + 16 * q + 4 * s + 2 * (j / 2) + h;
                copy_half(to + s * 512 + lane * 16 + j * 4 + h * 2,
                          strip.rows + (g + 8 * (j % 2)) * strip.row_bytes + 2 * input);
            }
        }
    }
}

// A warp packs a unit.
template <int Type>
__global__ void pack_units(const std::uint8_t* from,
                           std::uint8_t* to,
                           std::int64_t n_units,  // of all strips
                           int units_per_strip,
                           std::size_t row_bytes) {
    constexpr StripUnit kUnit = strip_unit(static_cast<ggml_type>(Type));
    const std::int64_t at = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
    const int lane = threadIdx.x % 32;
    if (at >= n_units) {
        return;
    }
    const std::int64_t strip_index = at / units_per_strip;
    const int first = static_cast<int>(at % units_per_strip) * kUnit.n_inputs;
    const FileStrip strip{from + strip_index * kStripRows * row_bytes, row_bytes};
    std::uint8_t* unit = to + at * kUnit.n_bytes;
    if constexpr (Type == GGML_TYPE_F16 || Type == GGML_TYPE_BF16) {
        pack_halves<Type>(strip, first, lane, unit);
    } else {
        constexpr int kParts = kUnit.n_inputs / 64;
        constexpr int kLow = Type == GGML_TYPE_Q8_0 ? 1024 : 512;
        constexpr int kHigh =
            Type == GGML_TYPE_Q6_K                                                       ? 256
            : Type == GGML_TYPE_Q5_0 || Type == GGML_TYPE_Q5_1 || Type == GGML_TYPE_Q5_K ? 128
                                                                                         : 0;
        for (int i = 0; i < kParts; ++i) {
            pack_codes<Type>(strip, first + 64 * i, lane, unit + i * kLow,
                             unit + kParts * kLow + i * kHigh);
        }
        if (lane < 8) {
            pack_scales<Type>(strip, first, lane, unit + kParts * (kLow + kHigh));
        }
    }
}

template <int Type>
void pack(const std::uint8_t* from, std::uint8_t* to, std::int64_t n_in, std::int64_t n_out) {
    constexpr StripUnit kUnit = strip_unit(static_cast<ggml_type>(Type));
    constexpr int kThreads = 256;
    const std::int64_t per_strip = n_in / kUnit.n_inputs;
    const std::int64_t n_units = n_out / kStripRows * per_strip;
    const auto n_blocks = static_cast<unsigned>((n_units * 32 + kThreads - 1) / kThreads);
    const std::size_t row_bytes =
        static_cast<std::size_t>(per_strip) * static_cast<std::size_t>(kUnit.n_bytes / kStripRows);
    pack_units<Type>
        <<<n_blocks, kThreads>>>(from, to, n_units, static_cast<int>(per_strip), row_bytes);
}

}  // namespace

void pack_strips(void* data, ggml_type type, std::int64_t n_in, std::int64_t n_out) {
    KNAP_ASSERT(can_pack_strips(type, n_in), "the type and shape have a layout");
    n_out = rows_in_strips(n_out);
    const StripUnit unit = strip_unit(type);
    const auto n_bytes = static_cast<std::size_t>(n_out / kStripRows * (n_in / unit.n_inputs)) *
                         static_cast<std::size_t>(unit.n_bytes);
    void* copy = nullptr;
    check_memory(cudaMalloc(&copy, n_bytes), n_bytes, "a matrix while it is packed");
    check_cuda(cudaMemcpy(copy, data, n_bytes, cudaMemcpyDeviceToDevice), "copying a matrix");
    const auto* from = static_cast<const std::uint8_t*>(copy);
    auto* to = static_cast<std::uint8_t*>(data);
    switch (type) {
        case GGML_TYPE_Q4_0:
            pack<GGML_TYPE_Q4_0>(from, to, n_in, n_out);
            break;
        case GGML_TYPE_Q4_1:
            pack<GGML_TYPE_Q4_1>(from, to, n_in, n_out);
            break;
        case GGML_TYPE_Q5_0:
            pack<GGML_TYPE_Q5_0>(from, to, n_in, n_out);
            break;
        case GGML_TYPE_Q5_1:
            pack<GGML_TYPE_Q5_1>(from, to, n_in, n_out);
            break;
        case GGML_TYPE_Q8_0:
            pack<GGML_TYPE_Q8_0>(from, to, n_in, n_out);
            break;
        case GGML_TYPE_MXFP4:
            pack<GGML_TYPE_MXFP4>(from, to, n_in, n_out);
            break;
        case GGML_TYPE_Q4_K:
            pack<GGML_TYPE_Q4_K>(from, to, n_in, n_out);
            break;
        case GGML_TYPE_Q5_K:
            pack<GGML_TYPE_Q5_K>(from, to, n_in, n_out);
            break;
        case GGML_TYPE_Q6_K:
            pack<GGML_TYPE_Q6_K>(from, to, n_in, n_out);
            break;
        case GGML_TYPE_F16:
        case GGML_TYPE_BF16:
            pack<GGML_TYPE_F16>(from, to, n_in, n_out);
            break;
        default:
            break;
    }
    check_cuda(cudaDeviceSynchronize(), "packing a matrix");
    cudaFree(copy);
}

}  // namespace knap

// The inputs of products on their way: written by the phase before, as int8 blocks or as floats,
// and staged in shared memory by the one that multiplies.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/cuda/step_context.cuh"
#include "kernels/cuda/units.cuh"

namespace knap {

__device__ __forceinline__ float warp_sum(float x) {
    for (int step = 16; step > 0; step /= 2) {
        x = __fadd_rn(x, __shfl_xor_sync(~0u, x, step));
    }
    return x;
}

// Where input `i` of 64 goes, so that a lane's fragments are adjacent.
__device__ __forceinline__ int code_place(int i) {
    return i % 16 / 4 * 16 + i / 32 * 8 + i % 32 / 16 * 4 + i % 4;
}

// A warp gives the 32 inputs from `first` on of a column to a product; a lane has one of them.
struct InputWriter {
    std::int8_t* codes;
    float* scales;
    float* floats;
    int stride;  // columns in memory
    int n_in;    // of a column of floats
    bool gives_halves;

    __device__ __forceinline__ void write(float x, int first, int column, int lane) const {
        write_all<1>({x}, first, column, lane);
    }

    // The same for 32 * N inputs: a lane has N of them, one after the other.
    template <int N>
    __device__ __forceinline__ void write_all(const float (&x)[N],
                                              int first,
                                              int column,
                                              int lane) const {
        const int own = first + N * lane;
        if (gives_halves) {
            float* to = floats + static_cast<std::size_t>(column) * static_cast<std::size_t>(n_in);
#pragma unroll
            for (int i = 0; i < N; ++i) {
                to[own + i] = x[i];
            }
            return;
        }
        constexpr int kLanes = 32 / N;  // that share a scale
        float most = 0;
#pragma unroll
        for (int i = 0; i < N; ++i) {
            most = fmaxf(most, fabsf(x[i]));
        }
#pragma unroll
        for (int step = kLanes / 2; step > 0; step /= 2) {
            most = fmaxf(most, __shfl_xor_sync(~0u, most, step));
        }
        const float scale = most / 127.0f;
        const float inverse = most > 0 ? 127.0f / most : 0.0f;
        std::int8_t* to = codes + (own / 64 * stride + column) * 64 + code_place(own % 64);
        int sum = 0;
#pragma unroll
        for (int i = 0; i < N; ++i) {
            const int code = __float2int_rn(x[i] * inverse);
            to[i] = static_cast<std::int8_t>(code);
            sum += code;
        }
        if constexpr (N == 1) {
            sum = __reduce_add_sync(~0u, sum);
        } else {
#pragma unroll
            for (int step = kLanes / 2; step > 0; step /= 2) {
                sum += __shfl_xor_sync(~0u, sum, step);
            }
        }
        if (lane % kLanes == 0) {
            reinterpret_cast<float2*>(scales)[own / 32 * stride + column] =
                make_float2(scale, scale * static_cast<float>(sum));
        }
    }
};

// The sum of squares of 32 channels of a column: for a norm.
__device__ __forceinline__ void give_square(
    float x, float* squares, int stride, int first, int column, int lane) {
    const float square = warp_sum(x * x);
    if (lane == 0) {
        squares[first / 32 * stride + column] = square;
    }
}

// For the next product of the stream: the stream times the weights of the norm before it, if there
// is one. The factor of the norm follows from the sums of squares, when all of them are known.
struct StreamWriter {
    InputWriter inputs;
    const float* norm;
    float* squares;
    bool gives_inputs;

    __device__ float weight(int channel) const {
        return norm != nullptr ? __ldg(norm + channel) : 1.0f;
    }
    __device__ void write(float x, int first, int column, int lane) const {
        write(x, weight(first + lane), first, column, lane);
    }
    // With a weight that was loaded early.
    __device__ void write(float x, float weight, int first, int column, int lane) const {
        if (!gives_inputs) {
            return;
        }
        inputs.write(x * weight, first, column, lane);
        give_square(x, squares, inputs.stride, first, column, lane);
    }
};

__device__ inline InputWriter input_writer(
    const CudaBuffers& buffers, int which, int stride, int n_in, bool gives_halves) {
    return {buffers.codes[which], buffers.scales[which], buffers.floats[which], stride, n_in,
            gives_halves};
}

__device__ inline StreamWriter stream_writer(const CudaBuffers& buffers,
                                             const CudaPhase& phase,
                                             int stride,
                                             int n_embd) {
    return {input_writer(buffers, 0, stride, n_embd, phase.gives_halves), phase.norm,
            buffers.squares, phase.gives_inputs};
}

// A module's result as it is added to the stream: after the norm that follows it.
__device__ __forceinline__ float normed_result(
    float result, float factor, const float* post_norm, int channel, const CudaShape& shape) {
    const float normed = __fmul_rn(__fmul_rn(result, factor), __ldg(post_norm + channel));
    return __fmul_rn(normed, shape.residual_scale);
}

// 1 / sqrt(mean of squares + eps) of a column, by one warp. Between loading the squares and finding
// the factor there is time for something else.
struct NormSquares {
    float sum = 0;
    float last[4];  // not added yet

    __device__ __forceinline__ void load(
        const float* squares, int stride, int column, int n_embd, int lane) {
        const int n = n_embd / 32;
#pragma unroll 1
        for (int first = 0;; first += 128) {
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                const int block = first + lane + 32 * k;
                last[k] = block < n ? __ldcg(squares + block * stride + column) : 0.0f;
            }
            if (first + 128 >= n) {
                break;
            }
            add();
        }
    }
    __device__ __forceinline__ void add() {
#pragma unroll
        for (const float x : last) {
            sum = __fadd_rn(sum, x);
        }
    }
    __device__ __forceinline__ float factor(int n_embd, float eps) {
        add();
        return rsqrtf(warp_sum(sum) / static_cast<float>(n_embd) + eps);
    }
};

// Begins to copy the inputs of units [first, end) of 64 inputs into the region: see wait_copies().
template <int Columns>
__device__ __forceinline__ void stage_codes(const StepContext& c, int which, int first, int end) {
    const int code_bytes = (end - first) * Columns * 64;
    const int scale_bytes = (end - first) * Columns * 16;
    const auto* codes =
        reinterpret_cast<const std::uint8_t*>(c.args.buffers.codes[which]) + first * Columns * 64;
    const auto* scales =
        reinterpret_cast<const std::uint8_t*>(c.args.buffers.scales[which]) + first * Columns * 16;
    std::uint8_t* region = c.region();
    for (int at = c.thread * 16; at < code_bytes; at += kStepThreads * 16) {
        copy16_async(region + at, codes + at);
    }
    for (int at = c.thread * 16; at < scale_bytes; at += kStepThreads * 16) {
        copy16_async(region + code_bytes + at, scales + at);
    }
}

// The same from floats, which are rounded to 16 bits.
template <int Columns>
__device__ __forceinline__ void stage_halves(
    const StepContext& c, int which, int first, int end, int n_in, bool is_bf16, bool is_normed) {
    auto* halves = reinterpret_cast<std::uint32_t*>(c.region());
    const int n_pairs = (end - first) * 32;
    for (int column = 0; column < c.pass.n_rows; ++column) {
        const float factor = is_normed ? c.factors()[column] : 1.0f;
        const auto* from = reinterpret_cast<const float2*>(c.args.buffers.floats[which] +
                                                           column * n_in + first * 64);
#pragma unroll 4
        for (int i = c.thread; i < n_pairs; i += kStepThreads) {
            const float2 pair = __ldcg(from + i);
            std::uint32_t bits;
            if (is_bf16) {
                const __nv_bfloat162 both = __floats2bfloat162_rn(pair.x * factor, pair.y * factor);
                bits = *reinterpret_cast<const std::uint32_t*>(&both);
            } else {
                const __half2 both = __floats2half2_rn(pair.x * factor, pair.y * factor);
                bits = *reinterpret_cast<const std::uint32_t*>(&both);
            }
            halves[(i / 32 * Columns + column) * 32 + i % 32] = bits;
        }
    }
}

}  // namespace knap

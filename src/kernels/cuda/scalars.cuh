// What happens to single numbers beside products and sums, as a model wants it. Every operation is
// named, so that all kernels round alike.
#pragma once

#include "kernels/cuda/pass.h"

namespace knap {

// cap tanh(x / cap)
__device__ __forceinline__ float capped(float x, float cap) {
    // tanh(z) = 1 - 2 / (1 + e^2z)
    const float exponential = __expf(2.0f * __fdividef(x, cap));
    return __fmul_rn(cap, __fsub_rn(1.0f, __fdividef(2.0f, __fadd_rn(1.0f, exponential))));
}

// silu(x) = x / (1 + e^-x). gelu(x) = x (1 + tanh z) / 2 = x / (1 + e^-2z)
// with z = sqrt(2 / pi) (x + 0.044715 x^3).
__device__ __forceinline__ float activated(float x, Activation activation) {
    float argument = x;
    if (activation == Activation::gelu) {
        constexpr float kTwice = 2 * 0.79788456080286535588f;
        constexpr float kCubic = 0.044715f;
        argument = __fmul_rn(x, __fmaf_rn(__fmul_rn(x, x), kTwice * kCubic, kTwice));
    }
    return x / (1.0f + __expf(-argument));
}

// What a logit becomes in the end.
__device__ __forceinline__ float finished_logit(float logit, const CudaShape& shape) {
    const float scaled = __fmul_rn(logit, shape.logit_scale);
    return shape.final_soft_cap != 0.0f ? capped(scaled, shape.final_soft_cap) : scaled;
}

}  // namespace knap

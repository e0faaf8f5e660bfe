// Arithmetic on single rows of floats, as ggml does it.
#pragma once

#include <cmath>

namespace knap {

// out[i] = x[i] / rms(x) * weight[i]; x and out may be the same. The squares are summed in order,
// in double precision.
inline void norm_row(const float* x, const float* weight, int n, float eps, float* out) {
    double sum = 0;
    for (int i = 0; i < n; ++i) {
        const float square = x[i] * x[i];
        sum += static_cast<double>(square);
    }
    const auto mean = static_cast<float>(sum / n);
    const float scale = 1.0f / std::sqrt(mean + eps);
    for (int i = 0; i < n; ++i) {
        const float normed = x[i] * scale;
        out[i] = normed * weight[i];
    }
}

// x[i] *= factor
inline void scale_row(float factor, int n, float* x) {
    if (factor != 1.0f) {
        for (int i = 0; i < n; ++i) {
            x[i] *= factor;
        }
    }
}

// x[i] += added[i]
inline void add_row(const float* added, int n, float* x) {
    for (int i = 0; i < n; ++i) {
        x[i] += added[i];
    }
}

// x[i] = cap tanh(x[i] / cap); 0: no cap
inline void cap_row(float cap, int n, float* x) {
    if (cap != 0.0f) {
        const float inverse = 1.0f / cap;
        for (int i = 0; i < n; ++i) {
            x[i] = std::tanh(x[i] * inverse) * cap;
        }
    }
}

}  // namespace knap

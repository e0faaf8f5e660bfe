// RMS normalisation to floats, with ggml's arithmetic: the squares are summed in order, in double
// precision.
#pragma once

#include <cmath>

namespace knap {

// out[i] = x[i] / rms(x) * weight[i]; x and out may be the same.
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

}  // namespace knap

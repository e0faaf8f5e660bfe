#include "kernels/attention/attention.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "kernels/attention/attention_variants.h"
#include "kernels/power_of_two.h"
#include "kernels/usable_kernels.h"

namespace knap {
void clear_partial(int head_dim, float* state) {
    std::fill_n(state, head_dim, 0.0f);
    state[head_dim] = -std::numeric_limits<float>::infinity();
    state[head_dim + 1] = 0.0f;
}

void put_sink(int head_dim, float score, float* state) {
    clear_partial(head_dim, state);
    state[head_dim] = score * kLog2E;
    state[head_dim + 1] = 1.0f;
}

void finish_partial(int head_dim, const float* state, float* out) {
    const float sum = state[head_dim + 1];
    const float inverse = sum > 0.0f ? 1.0f / sum : 0.0f;
    std::transform(state, state + head_dim, out, [inverse](float x) { return x * inverse; });
}

std::span<const AttentionKernel> attention_kernels() {
    static const std::vector<AttentionKernel> kernels = usable_kernels<AttentionKernel>({
#if defined(__x86_64__)
        &kAvx512Attention, &kAvx2Attention,
#elif defined(__aarch64__)
        &kNeonAttention,
#endif
            &kPlainAttention,
    });
    return kernels;
}

bool has_fast_attention() {
    return attention_kernels().size() > 1;
}

}  // namespace knap

#include "kernels/attention.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "kernels/attention_variants.h"
#include "kernels/isa.h"

namespace knap {
namespace {

std::vector<AttentionKernel> find_kernels() {
    std::vector<AttentionKernel> kernels;
#if defined(__x86_64__)
    if (may_use(Isa::avx512)) {
        kernels.push_back(kAvx512Attention);
    }
    if (may_use(Isa::avx2)) {
        kernels.push_back(kAvx2Attention);
    }
#endif
    kernels.push_back(kPlainAttention);
    return kernels;
}

}  // namespace

void clear_partial(int head_dim, float* state) {
    std::fill_n(state, head_dim, 0.0f);
    state[head_dim] = -std::numeric_limits<float>::infinity();
    state[head_dim + 1] = 0.0f;
}

void finish_partial(int head_dim, const float* state, float* out) {
    const float sum = state[head_dim + 1];
    const float inverse = sum > 0.0f ? 1.0f / sum : 0.0f;
    std::transform(state, state + head_dim, out, [inverse](float x) { return x * inverse; });
}

std::span<const AttentionKernel> attention_kernels() {
    static const std::vector<AttentionKernel> kernels = find_kernels();
    return kernels;
}

bool has_fast_attention() {
    return attention_kernels().size() > 1;
}

}  // namespace knap

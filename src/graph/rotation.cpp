#include "graph/rotation.h"

#include <cstddef>

namespace knap {

ggml_tensor* build_rotation(ggml_context* ctx,
                            const RopeConfig& rope,
                            ggml_tensor* x,
                            ggml_tensor* positions,
                            ggml_tensor* divisors) {
    const int mode =
        rope.pairing == RopePairing::halves ? GGML_ROPE_TYPE_NEOX : GGML_ROPE_TYPE_NORMAL;
    return ggml_rope_ext(ctx, x, positions, divisors, rope.n_rot, mode, rope.n_ctx_orig,
                         rope.freq_base, rope.freq_scale, rope.ext_factor, rope.attn_factor,
                         rope.beta_fast, rope.beta_slow);
}

ggml_tensor* build_rope_table(ggml_context* ctx,
                              const RopeConfig& rope,
                              ggml_tensor* unit_pairs,
                              ggml_tensor* positions,
                              ggml_tensor* divisors) {
    const std::int64_t n_rows = unit_pairs->ne[1];
    ggml_tensor* heads = ggml_reshape_3d(ctx, unit_pairs, rope.n_rot, 1, n_rows);
    ggml_tensor* rope_table = build_rotation(ctx, rope, heads, positions, divisors);
    return ggml_reshape_2d(ctx, rope_table, rope.n_rot, n_rows);
}

void fill_unit_pairs(const RopeConfig& rope, std::span<float> out) {
    const auto n_rot = static_cast<std::size_t>(rope.n_rot);
    for (std::size_t i = 0; i < out.size(); ++i) {
        const std::size_t channel = i % n_rot;
        const bool is_first =
            rope.pairing == RopePairing::halves ? channel < n_rot / 2 : channel % 2 == 0;
        out[i] = is_first ? 1.0f : 0.0f;
    }
}

}  // namespace knap

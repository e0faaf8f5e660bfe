// RoPE: ggml's rotation with a model's settings, and its angles for a kernel that does the rotation
// itself.
#pragma once

#include <span>

#include "ggml.h"

#include "model/config.h"

namespace knap {

// `x` f32 [head_dim, n_heads, n_rows]; `positions` i32 [n_rows]; `divisors` are frequency divisors,
// f32 [n_rot / 2] or null.
ggml_tensor* build_rotation(ggml_context* ctx,
                            const RopeConfig& rope,
                            ggml_tensor* x,
                            ggml_tensor* positions,
                            ggml_tensor* divisors);

// The rotation of each pair of channels in every row of a pass, as its cosine and sine in the
// places of the pair: f32 [n_rot, n_rows]. These are the images of the pair (1, 0), which
// `unit_pairs` f32 [n_rot, n_rows] holds everywhere, so the angles are exactly ggml's.
ggml_tensor* build_rope_table(ggml_context* ctx,
                              const RopeConfig& rope,
                              ggml_tensor* unit_pairs,
                              ggml_tensor* positions,
                              ggml_tensor* divisors);

// Writes the pair (1, 0) everywhere; `out` holds whole rows of n_rot channels.
void fill_unit_pairs(const RopeConfig& rope, std::span<float> out);

}  // namespace knap

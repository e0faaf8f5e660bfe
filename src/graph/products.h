// Products of rows with weight matrices, as graph nodes: our kernels for matrices in our layout,
// ggml's operator for all others. The rest of a module is built the same way for both.
#pragma once

#include <span>

#include "ggml.h"

#include "kernels/activation.h"

namespace knap {

// The input of a product: f32 [n, n_rows], or the result of a norm or a gate. It is computed when a
// product first needs it, and only once; for our kernels, together with the rounding to eight bits.
class ProductInput {
  public:
    // References must outlive the graph.
    // Rows without a transformation.
    static ProductInput rows(ggml_tensor* x);
    // rms_norm(x) * weight
    static ProductInput normed(ggml_tensor* x, ggml_tensor* weight, const float& eps);
    // activation(gate) * up; both may be views whose rows are not contiguous.
    static ProductInput gated(ggml_tensor* gate, ggml_tensor* up, const Activation& activation);

    ggml_tensor* floats(ggml_context* ctx);     // f32 [n, n_rows]
    ggml_tensor* quantised(ggml_context* ctx);  // i8 [bytes of QuantisedBlock [n / 32], n_rows]

  private:
    enum class Kind { rows, normed, gated };

    ProductInput(Kind kind, ggml_tensor* first, ggml_tensor* second, const void* setting)
        : kind_(kind), first_(first), second_(second), setting_(setting) {}

    Kind kind_;
    ggml_tensor* first_;
    ggml_tensor* second_;
    const void* setting_;  // of the norm its epsilon, of the gate its activation
    ggml_tensor* floats_ = nullptr;
    ggml_tensor* quantised_ = nullptr;
};

// weight * x: f32 [n_out, n_rows]. With `added`, f32 of the same shape: weight * x + added.
ggml_tensor* build_product(ggml_context* ctx,
                           ggml_tensor* weight,
                           ProductInput& x,
                           ggml_tensor* added = nullptr);

// True if one node can multiply the same rows with all of these matrices.
bool can_join_products(std::span<ggml_tensor* const> weights);
// The results, concatenated: f32 [sum of n_out, n_rows].
ggml_tensor* build_joined_product(ggml_context* ctx,
                                  std::span<ggml_tensor* const> weights,
                                  ProductInput& x);

}  // namespace knap

// The forward pass in its plainest form: no folding, no graph reuse, attention as libllama builds
// it with flash attention off. It is bit-identical to libllama and the reference for our own. Plans
// and layouts are given row by row: a function decides for every pair of rows which attends to
// which.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ggml-cpp.h"

#include "support/loaded_model.h"

namespace knap::test {

// The types of the two factors of a product. ggml rounds activations to a type that suits the
// weights: eight bits for quantised weights, half precision for F16.
enum class Factors {
    as_stored,
    f16,  // weights and activations in half precision
    f32,  // dequantised weights and unrounded activations
};

struct ReferencePass {
    std::span<const Token> tokens;
    int first_row = 0;
    std::vector<std::int32_t> positions{};  // empty: the row indices
    // Whether row `row` of the pass attends to cache row `j` in `layer`; empty: to all up to its
    // own.
    std::function<bool(int layer, int row, int j)> sees{};
    const ModulePlan* plan = nullptr;  // which modules are skipped; `sees` decides about windows
};

// A text of random tokens, none of which has a router that is closer than `least_margin` to
// choosing another expert.
std::vector<Token> decided_tokens(LoadedModel& model, int n, unsigned seed, float least_margin);

class ReferenceForward {
  public:
    ReferenceForward(LoadedModel& model, int n_ctx, Factors factors = Factors::as_stored);

    // Appends `tokens` in one pass to those fed before. Returns the logits of every row.
    std::vector<std::vector<float>> feed(std::span<const Token> tokens);
    // Runs a pass, whose rows the next one may overwrite. Returns the logits of every row.
    std::vector<std::vector<float>> run(const ReferencePass& pass);

    // The same with other tokens in place of those at which a router is closer than `least_margin`
    // to choosing another expert, so that rounding does not decide. A choice changes its row, and
    // every row that attends to it.
    std::vector<std::vector<float>> run_decided(std::vector<Token>& tokens,
                                                ReferencePass pass,
                                                float least_margin);

  private:
    struct Graph;
    ggml_tensor* linear(ggml_context* ctx, ggml_tensor* weight, ggml_tensor* bias, ggml_tensor* x);
    ggml_tensor* attention(Graph& g, int layer, ggml_tensor* x);
    ggml_tensor* mlp(Graph& g, int layer, ggml_tensor* x);
    ggml_tensor* experts(Graph& g, int layer, int n_used, ggml_tensor* x);
    ggml_tensor* mlp_module(Graph& g, int layer, const Level& level, ggml_tensor* x);
    void set_inputs(Graph& g, const ReferencePass& pass);
    void read_margins(const Graph& g);

    LoadedModel& model_;
    int n_ctx_;
    Factors factors_;
    int n_past_ = 0;
    ggml_context_ptr cache_context_;
    ggml_backend_buffer_ptr cache_buffer_;
    std::vector<ggml_tensor*> keys_;    // [n_embd_kv, n_ctx] f16
    std::vector<ggml_tensor*> values_;  // [n_ctx, n_embd_kv] f16
    // Of the last pass, [n_rows]: by how much the last expert that a row uses is ahead of the next
    // one, in logits of the router, in the layer where that is least. Infinite: it chooses none.
    std::vector<float> router_margins_;
};

}  // namespace knap::test

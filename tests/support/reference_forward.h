// The forward pass written as plainly as possible: no folding, no graph reuse, attention as
// libllama builds it with flash attention off. It is bit-identical to libllama, and what ships is
// held to it.
#pragma once

#include <span>
#include <vector>

#include "ggml-cpp.h"

#include "support/loaded_model.h"

namespace knap::test {

class ReferenceForward {
  public:
    ReferenceForward(LoadedModel& model, int n_ctx);

    // Feeds `tokens` as one pass after what was fed before; the logits of every row.
    std::vector<std::vector<float>> feed(std::span<const Token> tokens);

  private:
    struct Graph;
    ggml_tensor* attention(Graph& g, int layer, ggml_tensor* x);
    ggml_tensor* mlp(Graph& g, int layer, ggml_tensor* x);
    void set_inputs(Graph& g, std::span<const Token> tokens);

    LoadedModel& model_;
    int n_ctx_;
    int n_past_ = 0;
    ggml_context_ptr cache_context_;
    ggml_backend_buffer_ptr cache_buffer_;
    std::vector<ggml_tensor*> keys_;    // [n_embd_kv, n_ctx] f16
    std::vector<ggml_tensor*> values_;  // [n_ctx, n_embd_kv] f16
};

}  // namespace knap::test

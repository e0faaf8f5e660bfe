// The inputs of a forward pass: tensors in memory of their own, large enough for any pass, so that
// they survive a computation and keep their address for every graph. A graph sees the part that it
// needs as views.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "ggml-cpp.h"

#include "graph/attention_layout.h"
#include "graph/forward.h"
#include "graph/graph_cache.h"
#include "kv/kv_cache.h"

namespace knap {

class ForwardInputs {
  public:
    ForwardInputs(const ModelConfig& config,
                  const Backend& backend,
                  const KvCache& cache,
                  int n_ubatch);

    // Fills what the graph of `key` reads.
    void set(const ForwardRequest& request, const GraphKey& key, const KvCache& cache);

    ggml_tensor* tokens(ggml_context* ctx, int n_rows) const;      // i32 [n_rows]
    ggml_tensor* hidden(ggml_context* ctx, int n_rows) const;      // f32 [n_embd, n_rows]
    ggml_tensor* positions(ggml_context* ctx, int n_rows) const;   // i32 [n_rows]
    ggml_tensor* logit_rows(ggml_context* ctx, int n_rows) const;  // i32 [n_rows]
    std::vector<ggml_tensor*> masks(ggml_context* ctx,
                                    std::span<const AttentionBlock> blocks) const;
    const KvSlots& slots() const { return slots_; }

    std::size_t bytes() const;

  private:
    void set_positions(const ForwardRequest& request, int n_rows);
    void set_masks(const ForwardRequest& request, const GraphKey& key);

    ggml_context_ptr context_;
    ggml_backend_buffer_ptr buffer_;
    ggml_tensor* tokens_ = nullptr;
    ggml_tensor* hidden_ = nullptr;
    ggml_tensor* positions_ = nullptr;
    ggml_tensor* logit_rows_ = nullptr;
    ggml_tensor* mask_ = nullptr;  // f16, blocks one after the other
    KvSlots slots_;
};

}  // namespace knap

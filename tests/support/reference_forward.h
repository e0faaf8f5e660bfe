// The forward pass written as plainly as possible: no folding, no graph reuse, attention as
// libllama builds it with flash attention off. It is bit-identical to libllama, and what ships is
// held to it. Plans and layouts are given row by row: who sees whom is asked for every pair.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ggml-cpp.h"

#include "support/loaded_model.h"

namespace knap::test {

struct ReferencePass {
    std::span<const Token> tokens;
    int first_row = 0;
    std::vector<std::int32_t> positions{};  // empty: the rows' own
    // Whether the pass's row `row` sees cache row `j` in `layer`; empty: all up to its own.
    std::function<bool(int layer, int row, int j)> sees{};
    const ModulePlan* plan = nullptr;  // which modules are skipped; windows are up to `sees`
};

class ReferenceForward {
  public:
    ReferenceForward(LoadedModel& model, int n_ctx);

    // Feeds `tokens` as one pass after what was fed before; the logits of every row.
    std::vector<std::vector<float>> feed(std::span<const Token> tokens);
    // One pass, whose rows the next one may overwrite; the logits of every row.
    std::vector<std::vector<float>> run(const ReferencePass& pass);

  private:
    struct Graph;
    ggml_tensor* attention(Graph& g, int layer, ggml_tensor* x);
    ggml_tensor* mlp(Graph& g, int layer, ggml_tensor* x);
    void set_inputs(Graph& g, const ReferencePass& pass);

    LoadedModel& model_;
    int n_ctx_;
    int n_past_ = 0;
    ggml_context_ptr cache_context_;
    ggml_backend_buffer_ptr cache_buffer_;
    std::vector<ggml_tensor*> keys_;    // [n_embd_kv, n_ctx] f16
    std::vector<ggml_tensor*> values_;  // [n_ctx, n_embd_kv] f16
};

}  // namespace knap::test

#include "graph/forward_inputs.h"

#include <algorithm>
#include <cstring>

#include "ggml-backend.h"

#include "base/error.h"
#include "device/backend.h"
#include "graph/attention.h"
#include "model/config.h"

namespace knap {
namespace {

// The most mask entries of any pass: its rows shrink as the context grows.
std::int64_t max_mask_size(int n_score_heads, int capacity, int n_ubatch) {
    std::int64_t most = 0;
    for (int n_kv = capacity; n_kv > 0; n_kv -= 64) {
        most = std::max(most, std::int64_t{n_kv} * max_pass_rows(n_kv, n_score_heads, n_ubatch));
    }
    return most;
}

template <typename Value>
std::span<Value> host_span(ggml_tensor* tensor) {
    return {static_cast<Value*>(tensor->data), static_cast<std::size_t>(ggml_nelements(tensor))};
}

}  // namespace

ForwardInputs::ForwardInputs(const ModelConfig& config,
                             const Backend& backend,
                             const KvCache& cache,
                             int n_ubatch) {
    constexpr std::size_t kMaxInputs = 8;
    context_.reset(ggml_init({kMaxInputs * ggml_tensor_overhead(), nullptr, true}));
    ggml_context* ctx = context_.get();
    tokens_ = ggml_set_name(ggml_new_tensor_1d(ctx, GGML_TYPE_I32, n_ubatch), "in.tokens");
    hidden_ =
        ggml_set_name(ggml_new_tensor_2d(ctx, GGML_TYPE_F32, config.n_embd, n_ubatch), "in.hidden");
    positions_ = ggml_set_name(ggml_new_tensor_1d(ctx, GGML_TYPE_I32, n_ubatch), "in.positions");
    logit_rows_ = ggml_set_name(ggml_new_tensor_1d(ctx, GGML_TYPE_I32, n_ubatch), "in.logit_rows");
    mask_ = ggml_set_name(ggml_new_tensor_1d(ctx, GGML_TYPE_F16,
                                             max_mask_size(heads_with_scores(config, cache),
                                                           cache.capacity(), n_ubatch)),
                          "in.mask");
    slots_ = cache.new_slots(ctx, n_ubatch);
    buffer_.reset(ggml_backend_alloc_ctx_tensors_from_buft(ctx, backend.buffer_type()));
    if (buffer_ == nullptr) {
        fail("memory: expected room for the inputs of a pass of ", n_ubatch,
             " rows (-ub), found less");
    }
}

void ForwardInputs::set(const ForwardRequest& request, const GraphKey& key, const KvCache& cache) {
    if (key.embeds_tokens) {
        std::copy(request.tokens.begin(), request.tokens.end(), host_span<Token>(tokens_).begin());
    } else {
        std::copy(request.hidden.begin(), request.hidden.end(), host_span<float>(hidden_).begin());
    }
    std::copy(request.logit_rows.begin(), request.logit_rows.end(),
              host_span<int>(logit_rows_).begin());
    set_positions(request, key.n_rows);
    cache.set_slots(slots_, request.first_row, key.n_rows);
    set_masks(request, key);
}

void ForwardInputs::set_positions(const ForwardRequest& request, int n_rows) {
    auto out = host_span<std::int32_t>(positions_);
    if (!request.positions.empty()) {
        std::copy(request.positions.begin(), request.positions.end(), out.begin());
        return;
    }
    for (int i = 0; i < n_rows; ++i) {
        out[static_cast<std::size_t>(i)] = request.first_row + i;
    }
}

void ForwardInputs::set_masks(const ForwardRequest& request, const GraphKey& key) {
    auto rest = host_span<std::uint16_t>(mask_);
    for (const AttentionBlock& block : key.blocks) {
        build_mask(request.layout, request.first_row, block, rest.first(block.mask_size()));
        rest = rest.subspan(block.mask_size());
    }
}

ggml_tensor* ForwardInputs::tokens(ggml_context* ctx, int n_rows) const {
    return ggml_view_1d(ctx, tokens_, n_rows, 0);
}

ggml_tensor* ForwardInputs::hidden(ggml_context* ctx, int n_rows) const {
    return ggml_view_2d(ctx, hidden_, hidden_->ne[0], n_rows, hidden_->nb[1], 0);
}

ggml_tensor* ForwardInputs::positions(ggml_context* ctx, int n_rows) const {
    return ggml_view_1d(ctx, positions_, n_rows, 0);
}

ggml_tensor* ForwardInputs::logit_rows(ggml_context* ctx, int n_rows) const {
    return ggml_view_1d(ctx, logit_rows_, n_rows, 0);
}

std::vector<ggml_tensor*> ForwardInputs::masks(ggml_context* ctx,
                                               std::span<const AttentionBlock> blocks) const {
    std::vector<ggml_tensor*> views;
    std::size_t offset = 0;
    for (const AttentionBlock& block : blocks) {
        const std::size_t row_bytes = ggml_row_size(GGML_TYPE_F16, block.n_kv);
        views.push_back(ggml_view_2d(ctx, mask_, block.n_kv, block.n_rows, row_bytes, offset));
        offset += row_bytes * static_cast<std::size_t>(block.n_rows);
    }
    return views;
}

std::size_t ForwardInputs::bytes() const {
    return ggml_backend_buffer_get_size(buffer_.get());
}

}  // namespace knap

// A bank of streams in a ggml tensor, and the nodes of passes that use it.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "ggml-cpp.h"

#include "device/mirrored_buffer.h"
#include "forward/pass.h"
#include "forward/stream_bank.h"
#include "graph/graph_cache.h"

namespace knap {

class Backend;

struct BankSize {
    int n_embd = 0;
    std::size_t n_rows = 0;
    std::size_t max_numbers = 0;  // indices that one pass may use

    std::size_t bytes() const;  // of the rows
};

class GgmlStreamBank final : public StreamBank {
  public:
    // Returns null if the device lacks the memory. `backend` must outlive the bank.
    static std::shared_ptr<GgmlStreamBank> make(Backend& backend, const BankSize& size);

    std::size_t n_rows() const { return static_cast<std::size_t>(rows_->ne[1]); }
    std::size_t bytes() const;

    // Uploads the indices of a pass to the device.
    void set(const BankRows& rows);

    // --- nodes of the pass that `key` describes; captures are counted from 0 ---
    // The rows that it resumes from: f32 [n_embd, n_rows].
    ggml_tensor* take(ggml_context* ctx, const GraphKey& key) const;
    // Stores `stream` [n_embd, n_rows] as this capture.
    ggml_tensor* put(ggml_context* ctx,
                     const GraphKey& key,
                     std::size_t capture,
                     ggml_tensor* stream) const;
    // The cosine of each row of `stream` with the row it is compared with: f32 [1, n_rows]. 0 if
    // one of them is all zeros, as for cosine() (search/cosine.h).
    ggml_tensor* compare(ggml_context* ctx,
                         const GraphKey& key,
                         std::size_t capture,
                         ggml_tensor* stream) const;

  private:
    GgmlStreamBank() = default;

    ggml_context_ptr context_;
    ggml_backend_buffer_ptr buffer_;
    ggml_tensor* rows_ = nullptr;  // f32 [n_embd, n_rows]
    ggml_context_ptr number_context_;
    std::optional<MirroredBuffer> number_buffer_;
    // i32: those of BankRows one behind the other, as far as a pass has them
    ggml_tensor* numbers_ = nullptr;
};

}  // namespace knap

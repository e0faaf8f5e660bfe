// Rows of residual streams that stay on a device from pass to pass. Passes resume from them, put
// captured rows among them and compare captured rows with them, all by number (BankRows), so that
// no stream crosses over to the program.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "ggml-cpp.h"

#include "device/mirrored_buffer.h"
#include "graph/forward.h"
#include "graph/graph_cache.h"

namespace knap {

class Backend;

struct BankSize {
    int n_embd = 0;
    std::size_t n_rows = 0;
    std::size_t max_numbers = 0;  // that one pass names of them

    std::size_t bytes() const;  // of the rows
};

class StreamBank {
  public:
    // Null: the device lacks the memory. `backend` must outlive the bank.
    static std::shared_ptr<StreamBank> make(Backend& backend, const BankSize& size);

    std::size_t n_rows() const { return static_cast<std::size_t>(rows_->ne[1]); }
    std::size_t bytes() const;

    // Has the numbers that a pass names brought to the device.
    void set(const BankRows& rows);

    // Nodes of the pass that `key` describes; captures are counted from 0.
    // The rows that it resumes from: f32 [n_embd, n_rows].
    ggml_tensor* take(ggml_context* ctx, const GraphKey& key) const;
    // Puts `stream` [n_embd, n_rows] where that capture goes.
    ggml_tensor* put(ggml_context* ctx,
                     const GraphKey& key,
                     std::size_t capture,
                     ggml_tensor* stream) const;
    // The cosine of each row of `stream` with the one that it is compared with: f32
    // [1, n_rows]. 0 where one of them is all zeros, as of cosine() (search/cosine.h).
    ggml_tensor* compare(ggml_context* ctx,
                         const GraphKey& key,
                         std::size_t capture,
                         ggml_tensor* stream) const;

  private:
    StreamBank() = default;

    ggml_context_ptr context_;
    ggml_backend_buffer_ptr buffer_;
    ggml_tensor* rows_ = nullptr;  // f32 [n_embd, n_rows]
    ggml_context_ptr number_context_;
    std::optional<MirroredBuffer> number_buffer_;
    // i32: those of BankRows one behind the other, as far as a pass has them
    ggml_tensor* numbers_ = nullptr;
};

}  // namespace knap

// What LlamaPeer and LlamaBatch have in common: a model and a context of libllama, and the rows of
// one call.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

#include "llama-cpp.h"

#include "knap/types.h"

#include "tools/peer/peer_options.h"

namespace knap {

// Rows for one call of llama_decode.
class LlamaRows {
  public:
    explicit LlamaRows(std::size_t n_max);
    ~LlamaRows() { llama_batch_free(batch_); }
    LlamaRows(const LlamaRows&) = delete;
    LlamaRows& operator=(const LlamaRows&) = delete;

    enum class Logits { none, last_row, every_row };
    // Consecutive rows of a sequence, from `first_position` on. At most `n_max` rows in all.
    void add(std::span<const Token> tokens, int sequence, int first_position, Logits wanted);

    std::int32_t size() const { return batch_.n_tokens; }
    bool has_logits(std::int32_t row) const { return batch_.logits[row] != 0; }
    const llama_batch& get() const { return batch_; }

  private:
    llama_batch batch_;
};

class LlamaContext {
  public:
    LlamaContext(const std::filesystem::path& path, const PeerOptions& options);
    // A context of its own on the weights of `other`.
    LlamaContext(const LlamaContext& other, const PeerOptions& options);

    void decode(const LlamaRows& rows);
    // Of a row of the latest call that has them, [n_vocab]; valid until the next call.
    std::span<const float> logits(std::int32_t row) const;
    // Drops the rows of a sequence from position `n_rows` on.
    void truncate(int sequence, int n_rows);

  private:
    void open(const PeerOptions& options);

    std::shared_ptr<llama_model> model_;
    llama_context_ptr context_;
    std::size_t n_vocab_ = 0;
};

}  // namespace knap

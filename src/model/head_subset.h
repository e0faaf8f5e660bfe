// The output head restricted to part of the vocabulary, for drafting (docs/methods.md, "Reduced
// head"). Rows of the output matrix are copied as stored, so their logits are bit-identical to
// those of the whole head. A draft made with it never proposes another token. That affects only how
// many drafts are accepted.
//
// It has the tokens with the lowest ids, which in byte-pair vocabularies are the alphabet and the
// earliest merges and so the most frequent; every end-of-generation token; and the tokens of the
// current text. Its capacity is fixed, so graphs that use it stay valid while tokens change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ggml-cpp.h"

#include "knap/types.h"

#include "model/packed_weight.h"

namespace knap {

class Backend;
class Weights;

// An output matrix with its bias.
struct HeadTensors {
    ggml_tensor* weight = nullptr;  // {n_embd, n_rows}
    ggml_tensor* bias = nullptr;    // {n_rows}; null when the model has none
};

class HeadSubset {
  public:
    // True when the rows of the head can be read one by one. False in ggml's other layouts and on
    // devices other than the host.
    static bool is_possible(const Weights& weights);
    // The number of rows for a vocabulary of `n_vocab` tokens.
    static int capacity_for(int n_vocab);

    // Allocates when tensors() is first called. is_possible(weights) must hold. `weights` and
    // `backend` must outlive the object. Takes as many tokens of `always` as leave room for a text.
    HeadSubset(const Weights& weights, const Backend& backend, std::span<const Token> always);

    // Starts another text: drops the tokens of the previous one.
    void begin(std::span<const Token> text);
    // Adds the next token of the text. When full, it replaces the token of the text that was added
    // first. So the latest token is always present, and a draft has a choice whatever a bias
    // forbids.
    void add(Token token);

    // {n_embd, capacity}; always returns the same tensors. The first rows are in use; the others
    // hold finite numbers.
    HeadTensors tensors();
    // Spreads logits [capacity, n_rows] over the vocabulary: [n_vocab, n_rows], -infinity for
    // tokens without a row.
    void spread(std::span<const float> logits, std::vector<float>& out) const;

    std::size_t bytes() const;                // allocated so far
    std::uint64_t id() const { return id_; }  // differs from that of every other; never 0

  private:
    void put(Token token, std::size_t row);
    void make_tensors();
    void copy_row(std::size_t row);

    // An output matrix, and its rows as the file stores them.
    struct Source {
        HeadTensors head;
        const std::byte* rows = nullptr;
    };
    static Source find_source(const Weights& weights);

    std::uint64_t id_;
    const Backend& backend_;
    Source source_;
    int capacity_;                // capacity_for() the vocabulary
    std::size_t n_kept_ = 0;      // tokens that stay whatever the text
    std::size_t next_to_go_ = 0;  // the next row to replace when all are in use
    std::vector<Token> tokens_;   // [rows in use]
    std::vector<bool> has_row_;   // [n_vocab]
    ggml_context_ptr context_;
    ggml_backend_buffer_ptr buffer_;
    HeadTensors own_;      // null until allocated
    PackedWeight packed_;  // of own_, if the head is packed
};

}  // namespace knap

// The output head of a part of the vocabulary, for drafting (methods 3.15, O11): rows of the output
// matrix copied as they are stored, so that their logits have the whole head's bits. A draft with
// it never proposes another token, which changes what is accepted and nothing else.
//
// It holds the tokens with the lowest ids, which in the vocabularies of byte-pair encodings are the
// alphabet and the earliest merges: the most frequent ones; every end-of-generation token; and
// those of the text at hand. There is room for a fixed number, so that graphs that use it stay
// valid while tokens come and go.
#pragma once

#include <cstddef>
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
    ggml_tensor* bias = nullptr;    // {n_rows}; null where the model has none
};

class HeadSubset {
  public:
    // Whether the rows of the head can be read one by one: matrices in ggml's other layouts and on
    // other devices than the host cannot.
    static bool is_possible(const Weights& weights);
    // Rows that there is room for, in a vocabulary of `n_vocab` tokens.
    static int capacity_for(int n_vocab);

    // Takes memory when tensors() is first called. `weights`, for which it must be possible, and
    // `backend` must outlive the object. Of `always` there are as many as leave room for a text.
    HeadSubset(const Weights& weights, const Backend& backend, std::span<const Token> always);

    // Another text begins: the tokens of the one before are forgotten.
    void begin(std::span<const Token> text);
    // The text goes on. Where room is short, the token of the text that came in first makes way. So
    // the latest one is always there, and a draft has something to choose whatever a bias forbids.
    void add(Token token);

    int capacity() const { return capacity_; }
    // The token of each row in use: the first rows of the matrix.
    std::span<const Token> tokens() const { return tokens_; }
    // The same ones ever after; {n_embd, capacity()}. Rows that are not in use hold anything
    // finite.
    HeadTensors tensors();
    // Spreads logits [capacity(), n_rows] over the vocabulary: [n_vocab, n_rows], -infinity where
    // there is no row.
    void spread(std::span<const float> logits, std::vector<float>& out) const;

    std::size_t bytes() const;  // taken so far

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

    const Backend& backend_;
    Source source_;
    int capacity_;
    std::size_t n_kept_ = 0;      // tokens that are there whatever the text
    std::size_t next_to_go_ = 0;  // row, once all are taken
    std::vector<Token> tokens_;   // [rows in use]
    std::vector<bool> has_row_;   // [n_vocab]
    ggml_context_ptr context_;
    ggml_backend_buffer_ptr buffer_;
    HeadTensors own_;      // null until there is memory
    PackedWeight packed_;  // of own_, where the head is packed
};

}  // namespace knap

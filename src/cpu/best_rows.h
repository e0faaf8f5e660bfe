// The best tokens of rows of logits, so that a greedy choice neither copies the rows nor searches
// them on one thread. The threads that multiply the head note the largest logit of every piece of a
// row while it is in their caches; then only the pieces that have the best ones are searched.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "sampling/logit_rows.h"

namespace knap {

class BestRows {
  public:
    // Tokens of a row that list() gives, at least. The larger this is, the more pieces are
    // searched.
    static constexpr int kMost = 2;

    // For rows of `n_vocab` logits that come in runs of `n_run`.
    void begin(std::size_t n_rows, std::size_t n_vocab, std::size_t n_run);
    // Logits of a row from `first` on, a multiple of `n_run`. Threads may note different runs at
    // the same time.
    void note(std::size_t row, std::size_t first, std::span<const float> logits);
    // Once all of them have been noted: `logits` [n_vocab, n_rows]. A row is empty if one of its
    // logits is NaN or +infinity.
    BestTokens list(std::span<const float> logits);

    std::size_t bytes() const;

  private:
    static constexpr std::size_t kPiece = 512;  // logits

    void list_row(std::span<const float> logits, std::span<const float> maxima);

    std::size_t n_rows_ = 0;
    std::size_t n_vocab_ = 0;
    std::size_t n_run_ = 0;
    std::size_t n_run_pieces_ = 0;
    std::size_t n_pieces_ = 0;   // of a row
    std::vector<float> maxima_;  // [n_pieces, n_rows]; NaN: a logit that cannot be compared
    std::vector<RankKey> keys_;
    std::vector<int> ends_;
};

}  // namespace knap

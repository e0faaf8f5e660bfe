// Rows of logits to choose from: whole, or the best tokens of every row, from which the same
// choices follow (Sampler::n_best_needed()). A device returns the best tokens where it can, because
// rows of a large vocabulary take long to copy and to search.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "knap/types.h"

#include "sampling/ranking.h"
#include "sampling/row_maximum.h"

namespace knap {

// The best tokens of some rows: at least as many as were asked for, with all that tie with the last
// of these, in any order. A row is empty if the device cannot tell.
struct BestTokens {
    std::span<const RankKey> keys{};  // of all rows
    std::span<const int> ends{};      // of each row, in `keys`

    std::size_t n_rows() const { return ends.size(); }
    std::span<const RankKey> row(std::size_t i) const {
        const auto begin = static_cast<std::size_t>(i == 0 ? 0 : ends[i - 1]);
        return keys.subspan(begin, static_cast<std::size_t>(ends[i]) - begin);
    }
};

// One of the two.
struct LogitRow {
    std::span<const float> logits{};  // [n_vocab]
    std::span<const RankKey> best{};
};

class LogitRows {
  public:
    LogitRows() = default;
    // `logits` [n_vocab, n_rows], or empty: `best` has the rows.
    LogitRows(std::span<const float> logits, std::size_t n_vocab, const BestTokens& best = {})
        : logits_(logits), n_vocab_(n_vocab), best_(best) {}

    std::size_t n_rows() const {
        return logits_.empty() ? best_.n_rows() : logits_.size() / n_vocab_;
    }
    LogitRow row(std::size_t i) const {
        if (logits_.empty()) {
            return {.best = best_.row(i)};
        }
        return {.logits = logits_.subspan(i * n_vocab_, n_vocab_)};
    }

  private:
    std::span<const float> logits_;
    std::size_t n_vocab_ = 1;
    BestTokens best_;
};

// The argmax of a row; the lowest id wins a tie. Throws like find_maximum() (row_maximum.h).
inline Token best_token(const LogitRow& row) {
    return row.logits.empty() ? token_of(std::ranges::min(row.best))
                              : find_maximum(row.logits).token;
}

}  // namespace knap

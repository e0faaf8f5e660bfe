#include "cpu/best_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/rounding.h"
#include "sampling/row_maximum.h"

namespace knap {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace

void BestRows::begin(std::size_t n_rows, std::size_t n_vocab, std::size_t n_run) {
    n_rows_ = n_rows;
    n_vocab_ = n_vocab;
    n_run_ = n_run;
    n_run_pieces_ = steps_for(n_run, kPiece);
    n_pieces_ = steps_for(n_vocab, n_run) * n_run_pieces_;
    maxima_.assign(n_rows * n_pieces_, -kInfinity);  // the last run may have fewer pieces
}

void BestRows::note(std::size_t row, std::size_t first, std::span<const float> logits) {
    float* maximum = maxima_.data() + row * n_pieces_ + first / n_run_ * n_run_pieces_;
    for (std::size_t at = 0; at < logits.size(); at += kPiece) {
        const LogitSummary piece =
            summarize(logits.subspan(at, std::min(kPiece, logits.size() - at)));
        *maximum++ = piece.is_sound ? piece.maximum : std::numeric_limits<float>::quiet_NaN();
    }
}

BestTokens BestRows::list(std::span<const float> logits) {
    keys_.clear();
    ends_.clear();
    for (std::size_t row = 0; row < n_rows_; ++row) {
        list_row(logits.subspan(row * n_vocab_, n_vocab_),
                 std::span(maxima_).subspan(row * n_pieces_, n_pieces_));
        ends_.push_back(static_cast<int>(keys_.size()));
    }
    return {.keys = keys_, .ends = ends_};
}

void BestRows::list_row(std::span<const float> logits, std::span<const float> maxima) {
    static_assert(kMost == 2, "the two largest maxima are those of two tokens");
    float best = -kInfinity;
    float second = -kInfinity;
    for (const float maximum : maxima) {
        if (std::isnan(maximum)) {
            return;
        }
        second = std::max(second, std::min(best, maximum));
        best = std::max(best, maximum);
    }
    // Tokens at -infinity cannot be chosen.
    const float threshold = std::max(second, std::numeric_limits<float>::lowest());
    for (std::size_t piece = 0; piece < maxima.size(); ++piece) {
        if (maxima[piece] < threshold) {
            continue;
        }
        const std::size_t run = piece / n_run_pieces_;
        const std::size_t begin = run * n_run_ + piece % n_run_pieces_ * kPiece;
        const std::size_t end = std::min({begin + kPiece, (run + 1) * n_run_, n_vocab_});
        for (std::size_t i = begin; i < end; ++i) {
            if (logits[i] >= threshold) {
                keys_.push_back(rank_key(logits[i], static_cast<Token>(i)));
            }
        }
    }
}

std::size_t BestRows::bytes() const {
    return maxima_.capacity() * sizeof(float) + keys_.capacity() * sizeof(RankKey) +
           ends_.capacity() * sizeof(int);
}

}  // namespace knap

#include "cuda/row_results.h"

#include <algorithm>

#include "kernels/cuda/results/best_tokens.h"

namespace knap {

void RowResults::begin(const PassRows& rows) {
    rows_ = &rows;
    has_logits_ = false;
    chooses_ = false;
    n_best_ = 0;
    for (const RowRun* run : rows.runs) {
        const ForwardRequest& request = run->request;
        if (!request.logit_rows.empty()) {
            n_best_ = std::max(n_best_, request.n_best);
            chooses_ = chooses_ || request.chooses;
            has_logits_ = has_logits_ || (request.n_best == 0 && !request.chooses);
        }
    }
}

std::size_t RowResults::n_logit_rows() const {
    const bool are_all = rows_->n_rows <= max_step_rows_ && !rows_->logit_rows.empty();
    return are_all ? static_cast<std::size_t>(rows_->n_rows) : rows_->logit_rows.size();
}

// Where a row that was asked for is among those that have logits.
std::size_t RowResults::place_of(std::size_t logit_row) const {
    return rows_->n_rows <= max_step_rows_ ? static_cast<std::size_t>(rows_->logit_rows[logit_row])
                                           : logit_row;
}

void RowResults::list_best(const float* logits, CudaStream& stream) {
    if (n_best_ > 0) {
        const std::size_t n_rows = n_logit_rows();
        std::uint64_t* lists =
            lists_.reserve(n_rows * best_list_numbers(config_.n_vocab, n_best_), stream);
        list_best_tokens(logits, static_cast<int>(n_rows), config_.n_vocab, n_best_, lists, stream);
    }
}

std::size_t RowResults::deliver(const CudaBuffers& buffers,
                                bool streams_stay,
                                std::span<const float> cosines,
                                CudaStream& stream) {
    const std::size_t n_asked = rows_->logit_rows.size();
    const std::size_t n_captured =
        static_cast<std::size_t>(rows_->n_rows) * static_cast<std::size_t>(config_.n_embd);
    const std::size_t n_captures = streams_stay ? 0 : rows_->captures.size();
    const std::size_t n_logits =
        has_logits_ ? n_asked * static_cast<std::size_t>(config_.n_vocab) : 0;
    const std::size_t n_choices = chooses_ ? n_logit_rows() : 0;
    const std::size_t n_listed =
        n_best_ > 0 ? n_logit_rows() * best_list_numbers(config_.n_vocab, n_best_) : 0;
    arena_.clear();
    const std::size_t lists = arena_.take(lists_.data(), n_listed);
    const std::size_t captured = arena_.take(buffers.captures, n_captures * n_captured);
    const std::size_t compared = arena_.take(cosines.data(), cosines.size());
    const std::size_t chosen = arena_.take(buffers.choices, n_choices);
    const std::size_t logits = take_logits(buffers.logits);
    const std::size_t n_bytes = arena_.fetch(stream);
    captures_.clear();
    for (std::size_t i = 0; i < n_captures; ++i) {
        captures_.push_back(
            arena_.at<const float>(captured + i * n_captured * sizeof(float), n_captured));
    }
    const auto choices = arena_.at<std::int32_t>(chosen, n_choices);
    for (std::size_t i = 0; chooses_ && i < n_asked; ++i) {
        choices[i] = choices[place_of(i)];
    }
    knap::deliver(config_, *rows_,
                  {.logits = arena_.at<const float>(logits, n_logits),
                   .choices = choices.first(chooses_ ? n_asked : 0),
                   .best = read_best(arena_.at<const std::uint64_t>(lists, n_listed)),
                   .captures = captures_,
                   .cosines = arena_.at<const float>(compared, cosines.size()),
                   .n_logit_rows = static_cast<int>(n_asked)});
    return n_bytes;
}

// The rows of those who want logits, each at its place among all that were asked for: neighbours in
// one copy.
std::size_t RowResults::take_logits(const float* logits) {
    const auto n_vocab = static_cast<std::size_t>(config_.n_vocab);
    const std::size_t at =
        arena_.place<float>(has_logits_ ? rows_->logit_rows.size() * n_vocab : 0);
    std::size_t row = 0;
    for (const RowRun* run : rows_->runs) {
        const std::size_t end = row + run->request.logit_rows.size();
        if (run->request.n_best > 0 || run->request.chooses) {
            row = end;
        }
        while (row < end) {
            const std::size_t first = row;
            const std::size_t place = place_of(first);
            while (row < end && place_of(row) - place == row - first) {
                ++row;
            }
            arena_.copy(at, first * n_vocab, logits + place * n_vocab, (row - first) * n_vocab);
        }
    }
    return at;
}

BestTokens RowResults::read_best(std::span<const std::uint64_t> lists) {
    best_.clear();
    best_ends_.clear();
    const std::size_t n_numbers = n_best_ > 0 ? best_list_numbers(config_.n_vocab, n_best_) : 0;
    for (std::size_t i = 0; n_best_ > 0 && i < rows_->logit_rows.size(); ++i) {
        append_best(lists.subspan(place_of(i) * n_numbers, n_numbers), n_best_, best_);
        best_ends_.push_back(static_cast<int>(best_.size()));
    }
    return {best_, best_ends_};
}

}  // namespace knap

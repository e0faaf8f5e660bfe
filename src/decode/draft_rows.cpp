#include "decode/draft_rows.h"

#include <numeric>

namespace knap {

void DraftRows::begin(const ModulePlan& plan, int first_row, std::span<const Token> guess) {
    plan_ = &plan;
    first_row_ = first_row;
    guess_ = guess;
    n_exact_layers_ = exact_layers(plan);
    n_given_ = 0;
    hidden_.clear();
    tokens_.clear();
}

std::span<const float> DraftRows::next(Token token) {
    if (!is_computed(token) && !run_pass(token)) {
        return {};
    }
    const std::size_t row = n_given_ - n_before_;
    const std::size_t n_vocab = result_.logits.size() / tokens_.size();
    keep_hidden(row);
    ++n_given_;
    return result_.logits.subspan(row * n_vocab, n_vocab);
}

ExactRows DraftRows::exact() const {
    if (n_exact_layers_ == 0) {
        return {};
    }
    return {.n_layers = n_exact_layers_, .n_rows = static_cast<int>(n_given_), .hidden = hidden_};
}

// A pass is replaced where the draft parts from it, so all rows before are the draft's.
bool DraftRows::is_computed(Token token) const {
    const std::size_t row = n_given_ - n_before_;
    return row < tokens_.size() && tokens_[row] == token;
}

bool DraftRows::run_pass(Token token) {
    tokens_.assign(1, token);
    if (n_given_ == 0) {
        tokens_.insert(tokens_.end(), guess_.begin(), guess_.end());
    }
    n_before_ = n_given_;
    logit_rows_.resize(tokens_.size());
    std::iota(logit_rows_.begin(), logit_rows_.end(), 0);
    const int capture = 2 * n_exact_layers_;
    result_ = forward_.run({
        .tokens = tokens_,
        .plan = plan_,
        .first_row = first_row_ + static_cast<int>(n_before_),
        .captures = std::span(&capture, n_exact_layers_ > 0 ? 1 : 0),
        .logit_rows = logit_rows_,
    });
    return result_.is_complete;
}

void DraftRows::keep_hidden(std::size_t row) {
    if (n_exact_layers_ == 0) {
        return;
    }
    const std::span<const float> rows = result_.captures.front();
    const std::size_t n_embd = rows.size() / tokens_.size();
    const auto hidden = rows.subspan(row * n_embd, n_embd);
    hidden_.insert(hidden_.end(), hidden.begin(), hidden.end());
}

}  // namespace knap

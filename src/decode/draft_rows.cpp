#include "decode/draft_rows.h"

#include <algorithm>
#include <numeric>

#include "decode/strategy.h"

namespace knap {

void DraftRows::set_model(const ModulePlan& plan, ExitHead* head, std::span<const int> captures) {
    plan_ = &plan;
    head_ = head;
    n_exact_layers_ = exact_layers(plan);
    captures_.clear();
    if (n_exact_layers_ > 0) {
        const int end = 2 * n_exact_layers_;
        captures_.assign(captures.begin(), std::ranges::lower_bound(captures, end));
        captures_.push_back(end);
    }
    streams_.resize(captures_.size());
}

void DraftRows::begin(int first_row, std::span<const Token> guess) {
    first_row_ = first_row;
    guess_ = guess;
    n_given_ = 0;
    n_before_ = 0;
    tokens_.clear();
    for (std::vector<float>& stream : streams_) {
        stream.clear();
    }
}

std::span<const float> DraftRows::next(Token token) {
    if (!is_computed(token) && !run_pass(token)) {
        return {};
    }
    const std::size_t row = n_given_ - n_before_;
    const std::size_t n_vocab = logits_.size() / tokens_.size();
    keep_streams(row);
    ++n_given_;
    return logits_.subspan(row * n_vocab, n_vocab);
}

bool DraftRows::can_chain(const DrawRule& rule) const {
    return forward_.max_chain(first_row_) > 0 && forward_.can_draw(rule) && head_ == nullptr &&
           (guess_.empty() || stops_by_itself()) && plan_->head() == HeadLevel::full;
}

std::optional<DraftRows::Chosen> DraftRows::next_choice(Token token,
                                                        const DrawRule& rule,
                                                        const StopState& stop,
                                                        int n_steps) {
    const bool is_over = n_given_ == n_before_ + tokens_.size();
    if (is_over && !run_chain(token, rule, stop, n_steps)) {
        return std::nullopt;
    }
    const std::size_t row = n_given_ - n_before_;
    keep_streams(row);
    ++n_given_;
    return Chosen{chain_.tokens[row], chain_.probabilities[row]};
}

// The cache row of the first row of the latest pass.
int DraftRows::row_of_pass() const {
    return first_row_ + static_cast<int>(n_before_);
}

bool DraftRows::run_chain(Token token, const DrawRule& rule, const StopState& stop, int n_steps) {
    n_before_ = n_given_;
    const int first_row = row_of_pass();
    n_steps = std::min(n_steps, forward_.max_chain(first_row));
    const auto n_guessed = n_given_ == 0 ? static_cast<std::size_t>(n_steps - 1) : 0;
    chain_ = forward_.run_chain({
        .token = token,
        .plan = plan_,
        .first_row = first_row,
        .n_steps = n_steps,
        .captures = captures_,
        .draw = rule,
        .guess = guess_.first(std::min(guess_.size(), n_guessed)),
        .stop = forward_.chains_stop() ? &stop : nullptr,
    });
    if (!chain_.is_complete) {
        return false;
    }
    // Each row holds the token that the step before it chose.
    tokens_.assign(1, token);
    tokens_.insert(tokens_.end(), chain_.tokens.begin(), chain_.tokens.end() - 1);
    result_ = {.captures = chain_.captures};
    return true;
}

ReusableRows DraftRows::reusable() const {
    if (n_exact_layers_ == 0) {
        return {};
    }
    return {.n_layers = n_exact_layers_,
            .n_rows = static_cast<int>(n_given_),
            .captures = captures_,
            .streams = streams_};
}

// The draft gets a new pass as soon as it diverges from the latest one, so all rows before this one
// belong to the draft.
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
    logit_rows_.resize(head_ == nullptr ? tokens_.size() : 0);
    std::iota(logit_rows_.begin(), logit_rows_.end(), 0);
    const int first_row = row_of_pass();
    result_ = forward_.run({
        .tokens = tokens_,
        .plan = plan_,
        .first_row = first_row,
        .captures = captures_,
        .logit_rows = logit_rows_,
    });
    if (!result_.is_complete) {
        return false;
    }
    logits_ = head_ == nullptr ? result_.logits : head_->logits(result_.captures.back(), first_row);
    return !logits_.empty();
}

void DraftRows::keep_streams(std::size_t row) {
    for (std::size_t i = 0; i < streams_.size(); ++i) {
        const std::span<const float> rows = result_.captures[i];
        const std::size_t n_embd = rows.size() / tokens_.size();
        const auto stream = rows.subspan(row * n_embd, n_embd);
        streams_[i].insert(streams_[i].end(), stream.begin(), stream.end());
    }
}

}  // namespace knap

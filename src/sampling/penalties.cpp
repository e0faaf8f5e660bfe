#include "sampling/penalties.h"

#include <algorithm>

#include "base/error.h"

namespace knap {

namespace {

constexpr std::int32_t kNoSlot = -1;

}  // namespace

void apply_bias(std::span<const std::pair<Token, float>> bias, std::span<float> logits) {
    for (const auto& [token, amount] : bias) {
        logits[token] += amount;
    }
}

PenaltyWindow::PenaltyWindow(std::size_t size, int n_vocab)
    : size_(size), slots_(static_cast<std::size_t>(n_vocab), kNoSlot) {
    entries_.reserve(std::min(size_ + 1, slots_.size()));
    history_.reserve(size_);
}

void PenaltyWindow::push(Token token) {
    KNAP_ASSERT(token >= 0 && static_cast<std::size_t>(token) < slots_.size(),
                "pushed tokens are in the vocabulary");
    history_.push_back(token);
    add(token);
    if (history_.size() > size_) {
        remove(history_[history_.size() - size_ - 1]);
    }
}

void PenaltyWindow::pop(std::size_t n_tokens) {
    KNAP_ASSERT(n_tokens <= history_.size(), "only pushed tokens can be taken back");
    for (; n_tokens > 0; --n_tokens) {
        if (history_.size() > size_) {
            add(history_[history_.size() - size_ - 1]);
        }
        remove(history_.back());
        history_.pop_back();
    }
}

void PenaltyWindow::apply(const Penalties& penalties, std::span<float> logits) const {
    KNAP_ASSERT(logits.size() == slots_.size(),
                "a row has a logit for each token of the vocabulary");
    for (const auto& [token, count] : entries_) {
        float& logit = logits[token];
        // Dividing a negative logit would make the token more probable.
        logit = logit <= 0.0f ? logit * penalties.repeat : logit / penalties.repeat;
        logit -= static_cast<float>(count) * penalties.frequency + penalties.presence;
    }
}

void PenaltyWindow::add(Token token) {
    std::int32_t& slot = slots_[token];
    if (slot == kNoSlot) {
        slot = static_cast<std::int32_t>(entries_.size());
        entries_.push_back({token, 0});
    }
    ++entries_[slot].count;
}

void PenaltyWindow::remove(Token token) {
    Entry& entry = entries_[slots_[token]];
    if (--entry.count > 0) {
        return;
    }
    entry = entries_.back();  // the last entry fills the gap
    slots_[entry.token] = slots_[token];
    slots_[token] = kNoSlot;
    entries_.pop_back();
}

}  // namespace knap

#include "serve/engine/answer_memory.h"

#include <algorithm>
#include <utility>

namespace knap {
namespace {

// Shorter answers have nothing to copy.
constexpr std::size_t kLeastTokens = 8;

}  // namespace

AnswerMemory::AnswerMemory(std::size_t max_tokens, std::size_t max_keys)
    : max_tokens_(max_tokens), max_keys_(max_keys) {}

void AnswerMemory::add(const std::string& key, std::vector<Token> answer) {
    if (answer.size() < kLeastTokens || max_tokens_ < kLeastTokens) {
        return;
    }
    answer.resize(std::min(answer.size(), max_tokens_));
    const std::lock_guard lock(mutex_);
    Entry* entry = find(key);
    if (entry == nullptr) {
        entries_.push_front({.key = key});
        entry = &entries_.front();
        if (entries_.size() > max_keys_) {
            entries_.pop_back();
        }
    }
    entry->n_tokens += answer.size();
    entry->answers.push_back(std::move(answer));
    while (entry->n_tokens > max_tokens_) {
        entry->n_tokens -= entry->answers.front().size();
        entry->answers.pop_front();
    }
}

std::vector<std::vector<Token>> AnswerMemory::answers(const std::string& key) {
    const std::lock_guard lock(mutex_);
    const Entry* entry = find(key);
    if (entry == nullptr) {
        return {};
    }
    return {entry->answers.begin(), entry->answers.end()};
}

// Moves the entry to the front.
AnswerMemory::Entry* AnswerMemory::find(const std::string& key) {
    const auto at = std::ranges::find(entries_, key, &Entry::key);
    if (at == entries_.end()) {
        return nullptr;
    }
    entries_.splice(entries_.begin(), entries_, at);
    return &entries_.front();
}

}  // namespace knap

#include "tools/peer/llama_server.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace knap {

LlamaServer::LlamaServer(LlamaBatch& batch, LlamaServerObserver observer)
    : batch_(batch),
      observer_(std::move(observer)),
      slots_(static_cast<std::size_t>(batch.options().n_sequences)) {
    for (int sequence = 0; sequence < batch.options().n_sequences; ++sequence) {
        batch_.clear(sequence);
    }
}

void LlamaServer::add(LlamaRequest request) {
    KNAP_ASSERT(!request.prompt.empty() && request.n_predict > 0, "a request has work");
    waiting_.push_back(std::move(request));
}

void LlamaServer::start_waiting() {
    for (Slot& slot : slots_) {
        if (slot.is_busy || waiting_.empty()) {
            continue;
        }
        slot = {.is_busy = true, .number = n_started_++, .request = std::move(waiting_.front())};
        waiting_.pop_front();
        if (observer_.on_start) {
            observer_.on_start(slot.number);
        }
    }
}

// Rows of answers first, then prompts in the order of their requests.
std::vector<LlamaBatch::Run> LlamaServer::next_runs() const {
    std::vector<LlamaBatch::Run> runs;
    std::vector<int> readers;
    for (int sequence = 0; sequence < static_cast<int>(slots_.size()); ++sequence) {
        const Slot& slot = slots_[static_cast<std::size_t>(sequence)];
        if (slot.is_busy && slot.is_reading()) {
            readers.push_back(sequence);
        } else if (slot.is_busy) {
            runs.push_back({sequence, std::span(&slot.pending, 1)});
        }
    }
    std::ranges::sort(readers, {}, [this](int sequence) {
        return slots_[static_cast<std::size_t>(sequence)].number;
    });
    const auto n_most = static_cast<std::size_t>(batch_.options().n_ubatch);
    std::size_t n_left = n_most - std::min(n_most, runs.size());
    for (const int sequence : readers) {
        const Slot& slot = slots_[static_cast<std::size_t>(sequence)];
        const auto rest = std::span(slot.request.prompt).subspan(slot.n_read);
        const std::size_t n = std::min(n_left, rest.size());
        if (n > 0) {
            runs.push_back({sequence, rest.first(n), n == rest.size()});
        }
        n_left -= n;
    }
    return runs;
}

bool LlamaServer::step() {
    start_waiting();
    const std::vector<LlamaBatch::Run> runs = next_runs();
    if (runs.empty()) {
        return false;
    }
    const auto logits = batch_.decode(runs);
    for (std::size_t i = 0; i < runs.size(); ++i) {
        const int sequence = runs[i].sequence;
        take(slots_[static_cast<std::size_t>(sequence)], sequence, runs[i], logits[i]);
    }
    return true;
}

void LlamaServer::take(Slot& slot,
                       int sequence,
                       const LlamaBatch::Run& run,
                       std::span<const float> logits) {
    if (slot.is_reading()) {
        slot.n_read += run.tokens.size();
    }
    if (logits.empty()) {
        return;
    }
    const auto n_before = static_cast<std::size_t>(slot.n_generated++);
    const Token choice = greedy_token(logits);
    slot.pending = n_before < slot.request.answer.size() ? slot.request.answer[n_before] : choice;
    if (observer_.on_token) {
        observer_.on_token(slot.number, slot.pending);
    }
    if (slot.n_generated == slot.request.n_predict) {
        batch_.clear(sequence);
        slot.is_busy = false;
    }
}

}  // namespace knap

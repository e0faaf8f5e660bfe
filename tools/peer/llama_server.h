// Continuous batching with libllama, as llama-server does it: a step decodes one row of each
// conversation that is being answered and fills up with rows of prompts, oldest first.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <vector>

#include "knap/types.h"

#include "tools/peer/llama_batch.h"

namespace knap {

struct LlamaRequest {
    std::vector<Token> prompt;
    int n_predict = 1;  // tokens of the answer, 1 or more; end-of-generation tokens do not end it
    // Fed instead of its own choices, where there are as many: the answer of another engine.
    std::vector<Token> answer{};
};

// Members may be empty.
struct LlamaServerObserver {
    std::function<void(std::size_t request)> on_start{};  // it has got its sequence
    std::function<void(std::size_t request, Token token)> on_token{};
};

class LlamaServer {
  public:
    // Clears all sequences. `batch` must outlive the server.
    LlamaServer(LlamaBatch& batch, LlamaServerObserver observer);

    // Queues a request, which begins in the first step that has a free sequence. Requests are
    // numbered from 0.
    void add(LlamaRequest request);
    // One call of llama_decode with at most n_ubatch rows. Returns false when all is answered.
    bool step();

  private:
    struct Slot {
        bool is_busy = false;
        std::size_t number = 0;
        LlamaRequest request{};
        std::size_t n_read = 0;  // rows of the prompt
        int n_generated = 0;
        Token pending = 0;  // the latest token, which has no row yet

        bool is_reading() const { return n_read < request.prompt.size(); }
    };

    void start_waiting();
    std::vector<LlamaBatch::Run> next_runs() const;
    void take(Slot& slot, int sequence, const LlamaBatch::Run& run, std::span<const float> logits);

    LlamaBatch& batch_;
    LlamaServerObserver observer_;
    std::deque<LlamaRequest> waiting_;
    std::size_t n_started_ = 0;
    std::vector<Slot> slots_;  // by sequence
};

}  // namespace knap

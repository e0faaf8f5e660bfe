// An engine's forward pass with its own cache, without a Session: tokens in, logits of every row
// out, in passes of exactly the size that the caller chooses.
#pragma once

#include <span>
#include <vector>

#include "runtime/engine_impl.h"

namespace knap {

class DirectPass {
  public:
    // For texts of up to `n_tokens` and passes of up to `max_rows`. The engine must outlive it.
    DirectPass(Engine::Impl& engine, int n_tokens, int max_rows);

    // Runs one pass over `tokens`, after the tokens fed before. Returns logits [n_vocab, n_rows],
    // valid until the next pass.
    std::span<const float> feed(std::span<const Token> tokens);
    void restart() { rows_->sequence().truncate(0); }

  private:
    std::unique_ptr<SingleSequence> rows_;
    std::vector<int> all_rows_;  // 0, 1, 2, ... [max_rows]
};

}  // namespace knap

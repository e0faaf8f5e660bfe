// libllama serving requests at once, with its better setting for the load: one cache for all
// sequences or one for each, with flash attention or without.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/measure/load/load_times.h"
#include "tools/peer/llama_batch.h"
#include "tools/peer/llama_server.h"

namespace knap {

std::vector<TokenTimes> serve(LlamaBatch& batch, std::span<const LlamaRequest> requests);

class PeerLoad {
  public:
    // `options` with kv_unified and flash_attention open. Contexts are made on the weights of
    // `weights`.
    PeerLoad(const LlamaBatch& weights, const PeerOptions& options);

    // Serves `trial` with every setting and keeps the fastest. Prompts and answers favour different
    // settings, so the trial should have them in the same proportion as what follows.
    void choose(std::span<const LlamaRequest> trial);
    // These need a choice.
    std::string setting() const;  // "flash=on unified=off"
    LlamaBatch& batch() { return *best_; }

  private:
    const LlamaBatch& weights_;
    PeerOptions options_;
    std::optional<LlamaBatch> best_;
};

}  // namespace knap

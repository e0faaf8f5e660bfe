// The two sides of batch_bench in one process: an engine, and libllama on the same file with as
// many threads of its own pool.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "knap/knap.h"

#include "base/rounding.h"
#include "bench/batch/prompts.h"
#include "bench/batch/settings.h"
#include "device/backend.h"
#include "runtime/engine_impl.h"
#include "tools/measure/load/peer_load.h"
#include "tools/measure/load/session_load.h"

namespace knap::bench {

// libllama rounds the context of a sequence up to a multiple of this; both sides get the same.
inline constexpr int kContextStep = 256;

inline int context_for(int n_tokens) {
    return round_up(n_tokens, kContextStep);
}

inline GenerateOptions options_of(const std::string& strategy, int n_predict) {
    return {.n_predict = n_predict, .speculation = {.strategy = strategy}, .ignore_eos = true};
}

class BatchRig {
  public:
    explicit BatchRig(const BatchSettings& settings)
        : model_(settings.model),
          backend_(settings.n_threads),
          weights_(model_, peer_options(1, kContextStep)) {}

    Backend& backend() { return backend_; }
    int n_threads() const { return backend_.n_threads(); }

    // A new engine, whose cache is empty, in place of the last one.
    Engine& load(int n_ctx, int n_parallel) {
        engine_.reset();
        engine_.emplace(RuntimeConfig{.model_path = model_,
                                      .n_ctx = n_ctx,
                                      .n_parallel = n_parallel,
                                      .n_threads = n_threads()});
        return *engine_;
    }
    void unload() { engine_.reset(); }

    PeerLoad peer(int n_sequences, int n_ctx) {
        return PeerLoad(weights_, peer_options(n_sequences, n_ctx));
    }

  private:
    PeerOptions peer_options(int n_sequences, int n_ctx) {
        return {.n_ctx = n_ctx,
                .n_threads = n_threads(),
                .repack = true,
                .beside = &backend_,
                .n_sequences = n_sequences};
    }

    std::filesystem::path model_;
    Backend backend_;  // of libllama
    LlamaBatch weights_;
    std::optional<Engine> engine_;
};

// Tokens that no prompt begins with.
inline void warm_up(std::span<Session> sessions, BatchPrompts& prompts) {
    constexpr int kShort = 32;
    knap::warm_up(sessions, prompts.random(kShort));
}

inline std::vector<LlamaRequest> peer_requests(std::span<const Prompt> prompts, int n_predict) {
    std::vector<LlamaRequest> requests;
    for (const Prompt& prompt : prompts) {
        requests.push_back({.prompt = prompt, .n_predict = n_predict});
    }
    return requests;
}

}  // namespace knap::bench

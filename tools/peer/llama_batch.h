// libllama with several conversations in one context, as a server runs it: the other side of
// comparisons that serve many at once.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "knap/types.h"

#include "tools/peer/peer_options.h"

namespace knap {

class LlamaBatch {
  public:
    explicit LlamaBatch(const std::filesystem::path& path, const PeerOptions& options);
    // Another context on the weights of `other`.
    LlamaBatch(const LlamaBatch& other, const PeerOptions& options);
    ~LlamaBatch();
    LlamaBatch(LlamaBatch&&) noexcept;

    const PeerOptions& options() const;

    // Tokens to append to a sequence.
    struct Run {
        int sequence = 0;  // below options().n_sequences
        std::span<const Token> tokens;
        bool wants_logits = true;  // of the last row
    };
    // Appends all runs in one call of llama_decode; each sequence has at most one run, and all have
    // at most n_ubatch rows together. Returns the logits of each run, [n_vocab], valid until the
    // next call; empty where none are wanted.
    std::vector<std::span<const float>> decode(std::span<const Run> runs);

    // Reads a prompt into an empty sequence, n_ubatch rows at a time. Returns the logits of its
    // last row.
    std::span<const float> read(int sequence, std::span<const Token> prompt);

    int n_rows(int sequence) const;
    void clear(int sequence);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

// The token with the largest logit; the lowest id wins a tie.
Token greedy_token(std::span<const float> logits);

}  // namespace knap

// llama.cpp's drafts from n-grams (llama-common), as llama-server drives them for one conversation,
// with their default settings. What is learned lasts from prompt to prompt, as in a slot of the
// server: `ngram-mod` keeps its table, `ngram-cache` its counts, `ngram-map-*` what still fits.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "knap/types.h"

namespace knap {

class LlamaDrafts {
  public:
    // `name`: one of kPeerNames other than plain decoding.
    explicit LlamaDrafts(std::string_view name);
    ~LlamaDrafts();
    LlamaDrafts(LlamaDrafts&&) noexcept;

    // Begins an answer to a prompt, which has been read.
    void begin(std::span<const Token> prompt);
    // A draft of at most `n_most` tokens to follow `pending`, the latest token, which has no row
    // yet. Often empty. Valid until the next call. Each draft is followed by accept().
    std::span<const Token> draft(Token pending, int n_most);
    // The text now has the pending token and the first `n_accepted` tokens of the draft.
    void accept(std::size_t n_accepted);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace knap

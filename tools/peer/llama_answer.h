// An answer that libllama writes, plainly or with drafts, in the rounds of llama-server: one call
// of llama_decode computes the pending token and its draft, tokens are taken as long as they are
// those of the draft, and one more; the rows of the others are dropped.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "knap/types.h"

#include "tools/peer/llama_drafts.h"
#include "tools/peer/llama_peer.h"

namespace knap {

struct LlamaAnswer {
    std::vector<Token> tokens{};
    int n_rounds = 0;
    std::vector<int> drafted{};   // by position in the draft
    std::vector<int> accepted{};  // likewise, and as long
    // Of everything after the first token, and its parts: making drafts; computing rows and taking
    // tokens from them.
    double decode_ms = 0;
    double draft_ms = 0;
    double verify_ms = 0;

    int n_drafted() const;
    int n_accepted() const;
};

// Returns token number `index` of an answer, where the model has these logits.
using ChooseToken = std::function<Token(std::size_t index, std::span<const float> logits)>;

struct LlamaAnswerRequest {
    std::span<const Token> prompt;  // its rows, and no others, are in the peer
    Token first = 0;                // the first token of the answer, which comes from the prompt
    int n_tokens = 1;               // of the answer; end-of-generation tokens do not end it
    ChooseToken choose;
    std::function<bool()> is_cancelled{};  // may be empty
};

// Null `drafts`: plain decoding. Returns nullopt when cancelled.
std::optional<LlamaAnswer> write_answer(LlamaPeer& peer,
                                        LlamaDrafts* drafts,
                                        const LlamaAnswerRequest& request);

}  // namespace knap

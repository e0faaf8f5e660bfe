// Log-probabilities as OpenAI's two interfaces have them.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "serve/api/json.h"
#include "serve/engine/job.h"

namespace knap {

using PieceOf = std::function<std::string(Token)>;  // the bytes of a token

// Chat: [{"token", "id", "logprob", "bytes", "top_logprobs": [...]}, ...]
Json chat_logprobs(std::span<const AnswerToken> tokens, const PieceOf& piece_of);

// Text: {"tokens", "token_logprobs", "top_logprobs", "text_offset"}. `offset` is the length of the
// text before the first token.
Json text_logprobs(std::span<const AnswerToken> tokens,
                   const PieceOf& piece_of,
                   std::size_t offset);

}  // namespace knap

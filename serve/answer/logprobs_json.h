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

// Text: {"tokens", "token_logprobs", "top_logprobs", "text_offset"}. Offsets are in characters, and
// a token that continues a character has the offset of that character. `n_characters` is the number
// of those that began before the first token; it counts on.
Json text_logprobs(std::span<const AnswerToken> tokens,
                   const PieceOf& piece_of,
                   std::size_t& n_characters);

}  // namespace knap

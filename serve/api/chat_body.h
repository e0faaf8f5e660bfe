// The body of POST /v1/chat/completions, read and checked.
#pragma once

#include "knap/chat.h"

#include "serve/api/generation_fields.h"

namespace knap {

struct ChatBody {
    ChatRequest chat{};
    GenerationRequest generation{};
};

// Throws RequestError naming the field at fault.
ChatBody read_chat_body(const Json& body, const GenerationDefaults& defaults, int n_vocab);

// Only what a template needs, for /apply-template.
ChatRequest read_chat_request(Fields& fields);

}  // namespace knap

// Checks of a chat request before a template sees it, and the guard of its texts against control
// tokens (control_tokens.h).
#pragma once

#include <string>
#include <string_view>

#include "knap/chat.h"

#include "text/control_tokens.h"

namespace knap {

// Throws knap::Error that names the field: "`.messages[1].role`: expected ...". Returns the request
// with the schemas of its tools as grammars can express them, without tools if none may be called.
ChatRequest checked_request(ChatRequest request);

// The texts of messages and tools with a mark in every control token, and the mark. An empty mark
// means that there is none.
struct GuardedRequest {
    ChatRequest request;
    std::string mark;
};
GuardedRequest guard_request(const ChatRequest& request,
                             const ControlTokens& controls,
                             std::string_view chat_template);

}  // namespace knap

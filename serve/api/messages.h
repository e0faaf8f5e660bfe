// The conversation of a chat request: messages and tools.
#pragma once

#include <vector>

#include "knap/chat.h"

#include "serve/api/fields.h"

namespace knap {

inline constexpr std::size_t kMaxTools = 128;

// `messages`: at least one. Throws RequestError naming the message and the field.
std::vector<ChatMessage> read_messages(Fields& fields);

// `tools`, `tool_choice` and `parallel_tool_calls`. A choice that names a tool leaves only that
// one, which is then required.
void read_tools(Fields& fields, ChatRequest& chat);

}  // namespace knap

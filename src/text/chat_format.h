// What is behind knap/chat.h: llama.cpp's template engine and its parsers of answers (llama-common)
// on the vocabulary of a model.
#pragma once

#include <memory>
#include <string_view>

#include "knap/chat.h"

#include "text/tokenizer.h"

namespace knap {

// `chat_template` as in ChatFormat's constructor. The tokenizer must outlive the format.
std::shared_ptr<const ChatFormat::Impl> make_chat_format(const Tokenizer& tokenizer,
                                                         std::string_view chat_template);

}  // namespace knap

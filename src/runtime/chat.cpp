#include "knap/chat.h"

#include "runtime/engine_impl.h"
#include "text/chat_format.h"

namespace knap {

ChatFormat::ChatFormat(const Engine& engine, std::string_view chat_template)
    : ChatFormat(make_chat_format(*impl_of(engine).tokenizer, chat_template)) {}

}  // namespace knap

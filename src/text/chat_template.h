// A chat template: a program in Jinja, or the name of a format that libllama writes itself. It
// comes from the model or the user, never from a request. Its time is limited; its input and its
// output are limited by those who use it (kMaxChatBytes).
//
// chat_template.cpp and chat_format.cpp are the only files that use llama.cpp's chat interface: C++
// structs without a promise of stability, which deps/setup therefore pins, and standard exceptions,
// which become knap::Error here.
#pragma once

#include <exception>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "llama-common/chat.h"

#include "knap/chat.h"

#include "text/tokenizer.h"

namespace knap {

// llama-common's messages have several lines, with an excerpt of the template. The last one is the
// reason.
std::string reason_of(const std::exception& error);

class ChatTemplate {
  public:
    // `given`: Jinja, or a name; empty for the model's own.
    ChatTemplate(const Tokenizer& tokenizer, std::string_view given);

    // Throws knap::Error if the template refuses the messages or takes longer than a second of
    // computing. If it wants all system messages at the beginning, they are moved there.
    common_chat_params apply(const ChatRequest& request) const;

    const std::string& source() const { return source_; }
    bool is_builtin() const { return is_builtin_; }  // written by libllama, without Jinja
    const std::map<std::string, bool>& capabilities() const { return capabilities_; }
    bool can(const char* capability) const { return capabilities_.at(capability); }

  private:
    common_chat_templates_inputs inputs(const ChatRequest& request) const;
    common_chat_params execute(const ChatRequest& request) const;

    std::string source_;
    bool is_builtin_;
    std::shared_ptr<const common_chat_templates> templates_;
    std::map<std::string, bool> capabilities_;
};

}  // namespace knap

// How a conversation is written for a model. libllama knows the common formats by name and
// recognises most models' own template text; it does not run the template's program, so a format it
// does not know cannot be rendered.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "knap/types.h"

namespace knap {

class ChatTemplate {
  public:
    // The format that `name` chooses; when that is empty, the one of the model's own template text.
    // Throws when libllama does not know it, or when the model has none.
    static ChatTemplate choose(std::string_view name, std::string_view model_text);
    // Whether choose({}, model_text) would succeed.
    static bool recognises(std::string_view model_text);

    // `open_answer` ends the text with the head of an assistant turn. Begin-of-sequence tokens are
    // the tokenizer's.
    std::string render(std::span<const ChatMessage> messages, bool open_answer) const;
    // What libllama calls the format. Of two names that render alike the first in the alphabet.
    const std::string& name() const { return name_; }

  private:
    ChatTemplate(std::string name, std::string source);

    std::string name_;
    std::string source_;  // a name or a template text: libllama takes either
};

}  // namespace knap

// Formats a conversation for a model. libllama knows the common formats by name and recognises the
// template text of most models. It does not execute templates, so a format it does not know cannot
// be rendered.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "knap/types.h"

namespace knap {

class ChatTemplate {
  public:
    // The format called `name`, or if that is empty, that of the model's own template text. Throws
    // knap::Error when libllama does not know it, or when the model has none.
    static ChatTemplate choose(std::string_view name, std::string_view model_text);
    // Whether choose({}, model_text) would succeed.
    static bool recognises(std::string_view model_text);

    // With `open_answer` the text ends with the header of an assistant turn. Adds no
    // begin-of-sequence token: the tokenizer does.
    std::string render(std::span<const ChatMessage> messages, bool open_answer) const;
    // libllama's name for the format. If two names render alike, the alphabetically first.
    const std::string& name() const { return name_; }

  private:
    ChatTemplate(std::string name, std::string source);

    std::string name_;
    std::string source_;  // a name or a template text; libllama takes either
};

}  // namespace knap

// The messages of a chat, and the prompt for the next answer: the session's tokens so far, followed
// by the tokens of the new turn, so that cached rows are not computed again.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "knap/chat.h"

namespace knap {

class Conversation {
  public:
    // An empty `system` means no system message. `ask` makes requests of messages.
    using Ask = std::function<ChatRequest(std::vector<ChatMessage>)>;
    Conversation(ChatFormat format, std::string system, Ask ask);

    // Adds a question and returns the prompt for its answer. `history` is the history of the
    // session that generated the answers so far.
    std::vector<Token> ask(std::string question, std::span<const Token> history);
    // What it was formatted to, and with what.
    const ChatPrompt& asked() const { return asked_; }
    const ChatFormat& format() const { return format_; }
    // Adds the answer to the last question. If it was cancelled before its first word, removes the
    // question instead.
    void answer(const Result& result);
    // Removes the last question. Only before anything was computed for it.
    void withdraw();
    void reset();

  private:
    ChatFormat format_;
    std::string system_;
    Ask ask_;
    std::vector<ChatMessage> messages_;
    ChatPrompt asked_;      // the formatted conversation up to the start of the next answer
    std::string computed_;  // the formatted text that the session's history encodes; empty: unknown
};

}  // namespace knap

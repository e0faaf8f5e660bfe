// The messages of a chat, and the prompt for the next answer: the session's tokens so far, followed
// by the tokens of the new turn, so that cached rows are not computed again.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "knap/knap.h"

namespace knap {

class Conversation {
  public:
    // An empty `template_name` means the model's own template, an empty `system` no system message.
    Conversation(const Engine& engine, std::string template_name, std::string system);

    // Adds a question and returns the prompt for its answer. `history` is the history of the
    // session that generated the answers so far.
    std::vector<Token> ask(std::string question, std::span<const Token> history);
    // Adds the answer to the last question. If it was cancelled before its first word, removes the
    // question instead.
    void answer(const Result& result);
    // Removes the last question. Only before anything was computed for it.
    void withdraw();
    void reset();

  private:
    const Engine& engine_;
    std::string template_name_;
    std::string system_;
    std::vector<ChatMessage> messages_;
    std::string asked_;     // the formatted conversation up to the start of the next answer
    std::string computed_;  // the formatted text that the session's history encodes; empty: unknown
};

}  // namespace knap

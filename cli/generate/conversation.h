// The messages of a chat, and the tokens that ask for the next answer: those of the session so far,
// followed by the new turn alone, so that the cache is never computed twice.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "knap/knap.h"

namespace knap {

class Conversation {
  public:
    // `template_name` and `system` may be empty: the model's own template, no system message.
    Conversation(const Engine& engine, std::string template_name, std::string system);

    // Adds a question. Returns the prompt for its answer; `history` is that of the session that
    // gave the answers.
    std::vector<Token> ask(std::string question, std::span<const Token> history);
    // Adds the answer to the last question. An answer cancelled before its first word takes the
    // question back.
    void answer(const Result& result);
    // Takes the last question back, before anything was computed for it.
    void withdraw();
    void reset();

  private:
    const Engine& engine_;
    std::string template_name_;
    std::string system_;
    std::vector<ChatMessage> messages_;
    std::string asked_;  // the template's text up to the head of the answer being awaited
    std::string
        computed_;  // the template's text that the session's history stands for; empty: not known
};

}  // namespace knap

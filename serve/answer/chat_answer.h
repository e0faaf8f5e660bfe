// The answer of /v1/chat/completions.
#pragma once

#include <vector>

#include "knap/chat.h"

#include "serve/answer/answer.h"

namespace knap {

struct ChatAnswerParts {
    AnswerHead head{};
    const ChatFormat& format;
    ChatPrompt prompt{};
    PieceOf piece_of{};
    int n_choices = 1;
    bool streams = false;
    bool has_logprobs = false;
};

class ChatAnswer : public Answer {
  public:
    explicit ChatAnswer(ChatAnswerParts parts);

    std::vector<Json> begin(int choice) override;
    std::vector<Json> add(int choice, AnswerPart part) override;
    std::vector<Json> finish(int choice, const JobEnd& end) override;
    Json empty_chunk() const override;
    Json whole() const override;
    std::string reasoning(int choice) const override;

  private:
    struct Choice {
        std::string text{};     // of the model
        ChatMessage message{};  // what it says so far, as sent
        std::vector<std::string> call_ids{};
        std::vector<AnswerToken> tokens{};  // with log-probabilities: those not sent yet
        std::string finish_reason{};
    };

    ChatMessage parse(const Choice& choice, bool is_partial) const;
    // Chunks from what was sent to `next`, which then counts as sent.
    std::vector<Json> advance(int index, ChatMessage next);
    Json chunk(int index, Json delta, Json finish = nullptr);
    Json take_logprobs(Choice& choice);
    Json tool_calls_json(const Choice& choice) const;

    ChatAnswerParts parts_;
    std::vector<Choice> choices_;
};

}  // namespace knap

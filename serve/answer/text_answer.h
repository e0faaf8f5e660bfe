// The answers of /v1/completions and of llama.cpp's /completion.
#pragma once

#include <vector>

#include "serve/answer/answer.h"

namespace knap {

struct TextAnswerParts {
    AnswerHead head{};
    PieceOf piece_of{};
    std::vector<std::string> echoes{};  // what the text of each choice begins with; may be empty
    bool has_logprobs = false;
};

class TextAnswer : public Answer {
  public:
    explicit TextAnswer(TextAnswerParts parts);

    std::vector<Json> begin(int choice) override;
    std::vector<Json> add(int choice, AnswerPart part) override;
    std::vector<Json> finish(int choice, const JobEnd& end) override;
    Json empty_chunk() const override;
    Json whole() const override;
    std::string reasoning(int choice) const override;

  private:
    struct Choice {
        std::string text{};
        std::vector<AnswerToken> tokens{};
        std::size_t n_characters = 0;  // of the tokens that were sent
        std::string finish_reason{};
    };

    Json chunk(int index, std::string text, std::vector<AnswerToken> tokens, Json finish);

    TextAnswerParts parts_;
    std::vector<Choice> choices_;
};

// {"content", "tokens", "stop", "stop_type", "stopping_word"}; several choices are an array.
class NativeAnswer : public Answer {
  public:
    NativeAnswer(AnswerHead head, int n_choices);

    std::vector<Json> begin(int choice) override;
    std::vector<Json> add(int choice, AnswerPart part) override;
    std::vector<Json> finish(int choice, const JobEnd& end) override;
    Json empty_chunk() const override;
    Json whole() const override;
    std::string reasoning(int choice) const override;

  private:
    struct Choice {
        std::string text{};
        std::vector<Token> tokens{};
        Json end{};  // the members that tell why it ended
    };

    AnswerHead head_;
    std::vector<Choice> choices_;
};

}  // namespace knap

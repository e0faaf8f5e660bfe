// Random requests: prompts of several kinds that continue one another or not, every sampler, and
// grammars.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "knap/knap.h"

#include "tools/check/check.h"
#include "tools/exactness/draws.h"

namespace knap {

struct DrawnRequest {
    std::vector<Token> prompt;
    GenerateOptions options;  // with plain decoding
    std::string sampling;     // in words: "greedy", "sampled, cut"
    std::string constraint;   // "none", "schema"
};

class RequestWriter {
  public:
    // Prompts are made of the tokens of `texts`, and of any others. Answers have `n_predict` tokens
    // at most. All must outlive the object.
    RequestWriter(const Engine& engine, std::span<const CheckPrompt> texts, int n_predict);

    // A request that often goes on with the conversation `before`, prompt and answer.
    DrawnRequest next(Draws& draws, std::span<const Token> before) const;
    // A text much like the answer: what a request may give as its prediction.
    std::vector<Token> like(Draws& draws, std::span<const Token> answer) const;

  private:
    Token any_token(Draws& draws) const;
    std::vector<Token> some_text(Draws& draws, int n) const;
    std::vector<Token> new_prompt(Draws& draws) const;
    std::vector<Token> prompt_after(Draws& draws, std::span<const Token> before) const;
    SamplingOptions draw_sampling(Draws& draws, bool has_grammar, std::string& words) const;

    std::span<const CheckPrompt> texts_;
    int n_vocab_;
    int n_ctx_;
    int n_predict_;
};

}  // namespace knap

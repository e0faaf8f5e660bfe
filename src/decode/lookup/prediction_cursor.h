// Follows an answer along a text that it is expected to be much like: OpenAI's `prediction`. Runs
// of tokens occur more than once in most texts, so a place that moves along with the answer says
// better what comes next than the latest occurrence of a run (lookup_source.h).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "knap/types.h"

namespace knap {

class PredictionCursor {
  public:
    // The answer is expected to begin where the prediction does.
    void begin(std::span<const Token> prediction);
    // Moves past the answer's next token. Where it is not the expected one, the nearest place after
    // which the prediction goes on like the answer's last tokens is looked for.
    void accept(Token token);

    // What the prediction says next. Empty: it has ended, or the answer has left it.
    std::span<const Token> next() const;
    // How many tokens before that agree, up to NgramIndex::kLongestMatch, which stands for the
    // beginning too.
    int match_length() const { return match_length_; }

  private:
    void find_again();
    std::size_t agreeing_before(std::size_t place) const;

    std::vector<Token> prediction_;
    std::vector<Token> answer_;
    std::size_t place_ = 0;  // of the next token; while lost, where the answer left the prediction
    int match_length_ = 0;   // 0: lost
};

}  // namespace knap

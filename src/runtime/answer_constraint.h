// The grammar of a request, as sampling and rounds see it.
#pragma once

#include <memory>
#include <vector>

#include "knap/types.h"

#include "runtime/forced_draft.h"
#include "sampling/token_constraint.h"
#include "text/grammar/grammar.h"

namespace knap {

class AnswerConstraint final : public TokenConstraint {
  public:
    // Null if the request has no grammar. Throws when the grammar is not valid, or when the request
    // forbids what ends it. `tokenizer` must outlive the object.
    static std::unique_ptr<AnswerConstraint> of(const GenerateOptions& options,
                                                const Tokenizer& tokenizer);

    void keep_fitting(std::vector<Token>& tokens) override { state_.keep_fitting(tokens); }
    bool accept(Token token) override { return state_.accept(token); }
    bool has_ended() const override { return state_.has_ended(); }
    std::unique_ptr<TokenConstraint> clone() const override;

    // A draft of at most `max_tokens` tokens of the text that must follow.
    ForcedDraft forced(int max_tokens) const;

  private:
    AnswerConstraint(const Tokenizer& tokenizer, const Grammar& grammar)
        : tokenizer_(tokenizer), state_(tokenizer, grammar) {}

    const Tokenizer& tokenizer_;
    GrammarState state_;
};

}  // namespace knap

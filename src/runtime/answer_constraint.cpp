#include "runtime/answer_constraint.h"

#include <algorithm>

#include "base/error.h"

namespace knap {

std::unique_ptr<AnswerConstraint> AnswerConstraint::of(const GenerateOptions& options,
                                                       const Tokenizer& tokenizer) {
    if (options.grammar.text.empty()) {
        return nullptr;
    }
    if (options.ignore_eos) {
        fail("`.ignore_eos`: expected false with a `.grammar`, which ends the answer, found true");
    }
    return std::unique_ptr<AnswerConstraint>(new AnswerConstraint(tokenizer, options.grammar));
}

std::unique_ptr<TokenConstraint> AnswerConstraint::clone() const {
    return std::unique_ptr<TokenConstraint>(new AnswerConstraint(*this));
}

ForcedDraft AnswerConstraint::forced(int max_tokens) const {
    constexpr std::size_t kBytesPerToken = 8;  // enough for most texts
    const auto n = static_cast<std::size_t>(std::max(max_tokens, 0));
    return {tokenizer_, state_.forced_text(n * kBytesPerToken), max_tokens};
}

}  // namespace knap

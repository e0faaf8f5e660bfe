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

std::vector<Token> AnswerConstraint::forced_tokens(int n_max) const {
    if (n_max <= 0) {
        return {};
    }
    const auto n = static_cast<std::size_t>(n_max);
    constexpr std::size_t kBytesPerToken = 8;  // enough for most texts
    std::vector<Token> tokens = tokenizer_.encode_inside(state_.forced_text(n * kBytesPerToken));
    tokens.resize(std::min(tokens.size(), n));
    return tokens;
}

}  // namespace knap

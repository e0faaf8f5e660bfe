// Turns the text of a prompt into tokens: in the model's chat template, cut to a given length.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "knap/knap.h"

namespace knap {

struct FittedPrompt {
    std::vector<Token> tokens;
    int n_document_tokens = 0;  // before it was cut

    bool is_cut() const { return tokens.size() < static_cast<std::size_t>(n_document_tokens); }
};

// The prompt in the model's chat template, in at most `n_max` tokens. A longer prompt loses the end
// of its document, which is the text before the last empty line; what follows that line asks for
// the answer ("Summary:") and stays. Throws when that alone is too long.
FittedPrompt fit_prompt(const Engine& engine, const std::string& text, std::size_t n_max);

}  // namespace knap

// Prompts of data, as a model reads them: in its chat template, and no longer than is wanted.
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

// The prompt as the model's template writes it, in at most `n_max` tokens. Where it is longer, its
// document loses its end; the line after it, which asks for the answer ("Summary:"), stays. Throws
// where there is no room for that line.
FittedPrompt fit_prompt(const Engine& engine, const std::string& text, std::size_t n_max);

}  // namespace knap

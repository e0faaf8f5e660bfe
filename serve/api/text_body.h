// The bodies of POST /v1/completions and /completion, read and checked.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "knap/types.h"

#include "serve/api/constraint_fields.h"
#include "serve/api/generation_fields.h"

namespace knap {

using TextPrompt = std::variant<std::string, std::vector<Token>>;

struct TextBody {
    std::vector<TextPrompt> prompts{};
    RequestConstraint constraint{};
    GenerationRequest generation{};
    bool echoes = false;  // the text begins with the prompt
};

// Throws RequestError naming the field at fault.
TextBody read_text_body(const Json& body, const GenerationDefaults& defaults, int n_vocab);

}  // namespace knap

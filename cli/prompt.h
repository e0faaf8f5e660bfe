// From the prompt flags to tokens.
#pragma once

#include <string>
#include <vector>

#include "knap/knap.h"

#include "flags.h"

namespace knap {

// The text of -p or -f. Throws UsageError when there is neither, Error when it is empty or cannot
// be read.
std::string read_prompt(const Settings& settings);

// The prompt inside the chat template, or as it is: with --raw, or when the model has no template
// at all.
std::vector<Token> tokenize_prompt(const Engine& engine,
                                   const Settings& settings,
                                   const std::string& prompt);

}  // namespace knap

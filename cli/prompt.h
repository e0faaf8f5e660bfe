// From the prompt flags to tokens.
#pragma once

#include <string>
#include <vector>

#include "knap/knap.h"

#include "cli/flags/flags.h"
#include "tools/measure/prompt_data.h"

namespace knap {

// The text of -p or -f. Throws UsageError when there is neither, Error when it is empty or cannot
// be read.
std::string read_prompt(const Settings& settings);

// The prompt inside the chat template, or as it is: with --raw, or when the model has no template
// at all.
std::vector<Token> tokenize_prompt(const Engine& engine,
                                   const Settings& settings,
                                   const std::string& prompt);

// The prompts of a file, each in the model's own chat template where it has one that is known. What
// would leave no room for an answer of `n_predict` tokens is cut: they are texts to measure with.
std::vector<std::vector<Token>> tokenize_data(const Engine& engine,
                                              Settings settings,
                                              const std::vector<DataPrompt>& prompts,
                                              int n_predict);

}  // namespace knap

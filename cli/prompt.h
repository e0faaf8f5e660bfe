// Turns the prompt flags into tokens.
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

// Tokenizes the prompt in the chat template, or as it is with --raw or when the model has no
// template.
std::vector<Token> tokenize_prompt(const Engine& engine,
                                   const Settings& settings,
                                   const std::string& prompt);

// Tokenizes the prompts of a file, each in the model's chat template if it has one. They
// only serve to measure, so those that leave no room for an answer of `n_predict` tokens are cut.
std::vector<std::vector<Token>> tokenize_data(const Engine& engine,
                                              const Settings& settings,
                                              const std::vector<DataPrompt>& prompts,
                                              int n_predict);

}  // namespace knap

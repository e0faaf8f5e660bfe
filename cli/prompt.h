// Turns the prompt flags into tokens.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "knap/chat.h"
#include "knap/knap.h"

#include "cli/flags/flags.h"
#include "tools/measure/prompt_data.h"

namespace knap {

// The text of -p or -f. Throws UsageError when there is neither, Error when it is empty or cannot
// be read.
std::string read_prompt(const Settings& settings);

// What the flags ask of a chat template.
ChatRequest chat_request(const Settings& settings, std::vector<ChatMessage> messages);
// The options of the answer to a formatted prompt: with the template's stop strings and grammar.
GenerateOptions answer_options(GenerateOptions options, const ChatPrompt& prompt);

// A prompt in the chat template, or as it is with --raw or when the model has no template.
struct RunPrompt {
    std::vector<Token> tokens;
    std::optional<ChatFormat> format{};  // none: as it is
    ChatPrompt formatted{};
};
RunPrompt format_prompt(const Engine& engine, const Settings& settings, const std::string& prompt);

// Tokenizes the prompts of a file, each in the model's chat template if it has one. They
// only serve to measure, so those that leave no room for an answer of `n_predict` tokens are cut.
std::vector<std::vector<Token>> tokenize_data(const Engine& engine,
                                              const Settings& settings,
                                              const std::vector<DataPrompt>& prompts,
                                              int n_predict);

}  // namespace knap

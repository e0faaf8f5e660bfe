// Prompts from files of one JSON object a line, {"id": ..., "task": ..., "prompt": ...}, as a model
// reads them.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "knap/knap.h"

#include "base/error.h"
#include "prompt_data.h"

namespace knap::bench {

// The first `limit` prompts of `source`: a file, or FILE:TASK for those of one task in it.
inline std::vector<DataPrompt> read_prompts(const std::string& source, std::size_t limit) {
    const std::size_t colon = source.find(".jsonl:");
    const std::string path = source.substr(0, colon == std::string::npos ? colon : colon + 6);
    const std::string task = source.substr(std::min(source.size(), path.size() + 1));
    std::vector<DataPrompt> prompts = read_prompt_data(path, /*limit=*/0);
    std::erase_if(prompts,
                  [&](const DataPrompt& prompt) { return !task.empty() && prompt.task != task; });
    prompts.resize(std::min(prompts.size(), limit));
    if (prompts.empty()) {
        fail(source, ": expected prompts, found none");
    }
    return prompts;
}

// Takes words off the end of `document`, `n_bytes` or more.
inline void cut_words(std::string& document, std::size_t n_bytes) {
    document.resize(document.size() - std::min(n_bytes, document.size()));
    document.resize(std::min(document.size(), document.find_last_of(" \n") + 1));
}

// The prompt as the model's template writes it, in at most `n_max` tokens. Where it is longer, its
// document loses its end; the line after it, which asks for the answer ("Summary:"), stays.
inline std::vector<Token> fit_prompt(const Engine& engine,
                                     const std::string& text,
                                     std::size_t n_max) {
    const std::size_t end = std::min(text.size(), text.rfind("\n\n"));
    std::string document = text.substr(0, end);
    const std::string question = text.substr(end);
    for (;;) {
        const std::vector<ChatMessage> messages{{"user", document + question}};
        const std::string written =
            engine.has_chat_template() ? engine.apply_chat_template(messages) : messages[0].content;
        std::vector<Token> tokens = engine.tokenize(written, true, true);
        if (tokens.size() <= n_max) {
            return tokens;
        }
        if (document.empty()) {
            fail("prompt: expected ", n_max, " tokens at most, found ", tokens.size(),
                 " without its document");
        }
        cut_words(document, document.size() * (tokens.size() - n_max) / tokens.size() + 1);
    }
}

}  // namespace knap::bench

#include "tools/measure/prompt_fit.h"

#include <algorithm>

#include "base/error.h"

namespace knap {
namespace {

std::vector<Token> tokenize(const Engine& engine, const std::string& text) {
    const std::vector<ChatMessage> messages{{"user", text}};
    const std::string written =
        engine.has_chat_template() ? engine.apply_chat_template(messages) : text;
    return engine.tokenize(written, /*add_bos=*/true, /*parse_special=*/true);
}

// Removes whole words, at least `n_bytes`, from the end of `document`.
void cut_words(std::string& document, std::size_t n_bytes) {
    document.resize(document.size() - std::min(n_bytes, document.size()));
    document.resize(std::min(document.size(), document.find_last_of(" \n") + 1));
}

}  // namespace

FittedPrompt fit_prompt(const Engine& engine, const std::string& text, std::size_t n_max) {
    const std::size_t end = std::min(text.size(), text.rfind("\n\n"));
    std::string document = text.substr(0, end);
    const std::string question = text.substr(end);
    std::vector<Token> tokens = tokenize(engine, text);
    const auto n_document_tokens = static_cast<int>(tokens.size());
    while (tokens.size() > n_max) {
        if (document.empty()) {
            fail("prompt: expected at most ", n_max, " tokens, found ", tokens.size(),
                 " even without the document");
        }
        cut_words(document, document.size() * (tokens.size() - n_max) / tokens.size() + 1);
        tokens = tokenize(engine, document + question);
    }
    return {.tokens = std::move(tokens), .n_document_tokens = n_document_tokens};
}

}  // namespace knap

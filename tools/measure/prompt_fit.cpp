#include "tools/measure/prompt_fit.h"

#include <algorithm>
#include <optional>

#include "knap/chat.h"

#include "base/error.h"

namespace knap {
namespace {

// The text as a question, if the model has a chat template.
class Writer {
  public:
    explicit Writer(const Engine& engine) : engine_(engine) {
        if (!engine.info().chat_template.empty()) {
            format_.emplace(engine);
        }
    }

    std::vector<Token> tokenize(const std::string& text) const {
        return format_ ? format_->render({.messages = {{"user", text}}}).tokens
                       : engine_.tokenize(text, /*add_bos=*/true, /*parse_special=*/true);
    }

  private:
    const Engine& engine_;
    std::optional<ChatFormat> format_;
};

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
    const Writer writer(engine);
    std::vector<Token> tokens = writer.tokenize(text);
    const auto n_document_tokens = static_cast<int>(tokens.size());
    while (tokens.size() > n_max) {
        if (document.empty()) {
            fail("prompt: expected at most ", n_max, " tokens, found ", tokens.size(),
                 " even without the document");
        }
        cut_words(document, document.size() * (tokens.size() - n_max) / tokens.size() + 1);
        tokens = writer.tokenize(document + question);
    }
    return {.tokens = std::move(tokens), .n_document_tokens = n_document_tokens};
}

}  // namespace knap

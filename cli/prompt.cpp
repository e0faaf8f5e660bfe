#include "cli/prompt.h"

#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/text_file.h"
#include "cli/exit_code.h"

namespace knap {

std::string read_prompt(const Settings& settings) {
    if (!settings.prompt && !settings.prompt_file) {
        fail_usage("no prompt: expected -p TEXT, -f FILE, or -f - for standard input");
    }
    std::string text =
        settings.prompt ? *settings.prompt : read_text_file(*settings.prompt_file, "prompt");
    // Editors end a file with a newline, which is not meant to be part of the prompt.
    if (settings.prompt_file && text.ends_with('\n')) {
        text.pop_back();
    }
    if (text.empty()) {
        fail("the prompt is empty");
    }
    return text;
}

std::vector<Token> tokenize_prompt(const Engine& engine,
                                   const Settings& settings,
                                   const std::string& prompt) {
    const bool has_template = engine.has_chat_template() || !settings.chat_template.empty();
    std::string text = prompt;
    if (has_template && !settings.is_raw) {
        std::vector<ChatMessage> messages{{"user", prompt}};
        if (!settings.system.empty()) {
            messages.insert(messages.begin(), {"system", settings.system});
        }
        try {
            text = engine.apply_chat_template(messages, settings.chat_template);
        } catch (const Error& error) {
            fail(error.what(), "; or --raw, to use the prompt as it is");
        }
    } else if (!settings.system.empty()) {
        fail("--system: the model has no chat template: choose one with --chat-template NAME");
    }
    // Special tokens are parsed in raw prompts too, because a raw prompt may spell out a template.
    return engine.tokenize(text, /*add_bos=*/true, /*parse_special=*/true);
}

std::vector<std::vector<Token>> tokenize_data(const Engine& engine,
                                              Settings settings,
                                              const std::vector<DataPrompt>& prompts,
                                              int n_predict) {
    settings.is_raw = engine.info().chat_template.empty();
    const int n_room = engine.config().n_ctx - n_predict;
    if (n_room < 1) {
        fail("-n: expected fewer tokens than the context of ", engine.config().n_ctx, ", found ",
             n_predict);
    }
    std::vector<std::vector<Token>> all;
    for (const DataPrompt& prompt : prompts) {
        auto tokens = tokenize_prompt(engine, settings, prompt.text);
        if (tokens.size() > static_cast<std::size_t>(n_room)) {
            log_warning("prompt ", prompt.id, ": ", tokens.size(), " tokens, the first ", n_room,
                        " are used");
            tokens.resize(static_cast<std::size_t>(n_room));
        }
        all.push_back(std::move(tokens));
    }
    return all;
}

}  // namespace knap

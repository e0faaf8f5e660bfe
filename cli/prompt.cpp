#include "cli/prompt.h"

#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "base/text_file.h"
#include "cli/exit_code.h"

namespace knap {
namespace {

ChatPrompt format_question(const ChatFormat& format,
                           const Settings& settings,
                           const std::string& question) {
    std::vector<ChatMessage> messages{{"user", question}};
    if (!settings.system.empty()) {
        messages.insert(messages.begin(), {"system", settings.system});
    }
    return format.render(chat_request(settings, std::move(messages)));
}

// Special tokens are parsed, because a raw prompt may spell out a template.
std::vector<Token> tokenize_raw(const Engine& engine, const std::string& prompt) {
    return engine.tokenize(prompt, /*add_bos=*/true, /*parse_special=*/true);
}

}  // namespace

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

ChatRequest chat_request(const Settings& settings, std::vector<ChatMessage> messages) {
    ChatRequest request{.messages = std::move(messages),
                        .enables_thinking = settings.enables_thinking,
                        .json_schema = settings.json_schema};
    if (request.json_schema.empty()) {
        request.grammar = settings.generate.grammar.text;
    }
    if (!settings.reasoning_effort.empty()) {
        request.arguments["reasoning_effort"] = concat('"', settings.reasoning_effort, '"');
    }
    return request;
}

GenerateOptions answer_options(GenerateOptions options, const ChatPrompt& prompt) {
    options.grammar = prompt.grammar;
    options.stop.insert(options.stop.end(), prompt.stop.begin(), prompt.stop.end());
    return options;
}

RunPrompt format_prompt(const Engine& engine, const Settings& settings, const std::string& prompt) {
    const bool has_template =
        !engine.info().chat_template.empty() || !settings.chat_template.empty();
    if (has_template && !settings.is_raw) {
        try {
            ChatFormat format(engine, settings.chat_template);
            ChatPrompt formatted = format_question(format, settings, prompt);
            return {formatted.tokens, std::move(format), std::move(formatted)};
        } catch (const Error& error) {
            fail(error.what(), "; or --raw, to use the prompt as it is");
        }
    }
    if (!settings.system.empty()) {
        fail("--system: the model has no chat template: choose one with --chat-template NAME");
    }
    return {tokenize_raw(engine, prompt)};
}

std::vector<std::vector<Token>> tokenize_data(const Engine& engine,
                                              const Settings& settings,
                                              const std::vector<DataPrompt>& prompts,
                                              int n_predict) {
    std::optional<ChatFormat> format;
    if (!engine.info().chat_template.empty()) {
        format.emplace(engine, settings.chat_template);
    }
    const int n_room = engine.config().n_ctx - n_predict;
    if (n_room < 1) {
        fail("-n: expected fewer tokens than the context of ", engine.config().n_ctx, ", found ",
             n_predict);
    }
    std::vector<std::vector<Token>> all;
    for (const DataPrompt& prompt : prompts) {
        auto tokens = format ? format_question(*format, settings, prompt.text).tokens
                             : tokenize_raw(engine, prompt.text);
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

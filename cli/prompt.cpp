#include "prompt.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "exit_code.h"

namespace knap {
namespace {

// More than any context can hold: a device that never ends is noticed before it fills the memory.
constexpr std::size_t kMaxPromptBytes = std::size_t{64} << 20;

std::string read_all(std::FILE* file, const std::string& name) {
    std::string text;
    std::array<char, 65536> chunk;
    while (const std::size_t n_read = std::fread(chunk.data(), 1, chunk.size(), file)) {
        text.append(chunk.data(), n_read);
        if (text.size() > kMaxPromptBytes) {
            fail("prompt ", name, ": expected at most ", kMaxPromptBytes, " bytes, found more");
        }
    }
    if (std::ferror(file) != 0) {
        fail("prompt ", name, ": cannot be read: ", std::strerror(errno));
    }
    return text;
}

std::string read_file(const std::filesystem::path& path) {
    if (path == "-") {
        return read_all(stdin, "on standard input");
    }
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                               &std::fclose);
    if (!file) {
        fail("prompt ", path.string(), ": cannot be opened: ", std::strerror(errno));
    }
    return read_all(file.get(), path.string());
}

}  // namespace

std::string read_prompt(const Settings& settings) {
    if (!settings.prompt && !settings.prompt_file) {
        fail_usage("no prompt: expected -p TEXT, -f FILE, or -f - for standard input");
    }
    std::string text = settings.prompt ? *settings.prompt : read_file(*settings.prompt_file);
    // An editor ends a file with a newline that its author did not mean as part of the prompt.
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
        text = engine.apply_chat_template(messages, settings.chat_template);
    } else if (!settings.system.empty()) {
        fail("--system: the model has no chat template, choose one with --chat-template NAME");
    }
    // Special tokens are read in either case: who gives a raw prompt may write out a template by
    // hand.
    return engine.tokenize(text, /*add_bos=*/true, /*parse_special=*/true);
}

}  // namespace knap

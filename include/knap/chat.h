// Conversations as prompts, and answers as messages: chat templates, tools and schemas.
//
//     knap::ChatFormat format(engine);
//     auto prompt = format.render({.messages = {{"user", "Hello"}}});
//     auto result = session.generate(prompt.tokens, {.stop = prompt.stop});
//     auto message = format.parse(prompt, result.text, /*is_partial=*/false);
//
// Control tokens come from the template alone: those that a message, a tool or an argument spells
// out become plain text. The exception is a template that itself joins parts of one message to the
// text of a control token.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "knap/knap.h"
#include "knap/types.h"

namespace knap {

struct ChatRequest {
    std::vector<ChatMessage> messages{};
    std::vector<ChatTool> tools{};
    ToolChoice tool_choice = ToolChoice::automatic;  // none: the prompt does not show the tools
    std::optional<bool> parallel_tool_calls{};       // nullopt: whether the template has them
    bool open_answer = true;  // the prompt ends with the header of an assistant turn
    // The last message is an assistant's, and the answer continues it. Then `open_answer` has no
    // effect.
    bool continue_final = false;
    bool enables_thinking = true;
    bool extracts_reasoning = true;                  // parse() fills ChatMessage::reasoning
    std::string json_schema{};                       // of the answer, JSON text; empty: none
    std::string grammar{};                           // GBNF of the answer; empty: none
    std::map<std::string, std::string> arguments{};  // further variables of the template, JSON text
};

struct ChatParser;

struct ChatPrompt {
    std::string text{};           // without a begin-of-sequence token that the tokenizer adds
    std::vector<Token> tokens{};  // with it
    Grammar grammar{};
    std::vector<std::string> stop{};  // strings that end the answer, like end-of-generation tokens
    std::vector<std::size_t>
        plain{};  // offsets in `text`: a control token around one is plain text
    std::shared_ptr<const ChatParser> parser{};  // for ChatFormat::parse()
};

inline constexpr std::size_t kMaxChatBytes = std::size_t{16}
                                             << 20;  // of a request, and of its text

// Immutable; any thread may call any member. The engine must outlive it.
class ChatFormat {
  public:
    // The model's own template, or the one given: a built-in name ("chatml", "llama3", ...) or
    // Jinja text. Built-in formats other than "chatml" have no tools. Throws when the model has
    // none, or when the text is not Jinja.
    explicit ChatFormat(const Engine& engine, std::string_view chat_template = {});

    // Throws when the template refuses the messages, and when a tool or schema is not supported.
    ChatPrompt render(const ChatRequest& request) const;
    // The tokens of the prompt's text from this byte on, where a token starts.
    std::vector<Token> tokens_from(const ChatPrompt& prompt, std::size_t offset) const;

    // What the answer to `prompt` says so far. If more may follow (`is_partial`), text is held back
    // that may be the start of a tag, and names of tools are complete. An answer that does not fit
    // the format is all content.
    ChatMessage parse(const ChatPrompt& prompt, std::string_view answer, bool is_partial) const;
    // True if nothing marks thoughts or calls in answers: they are all content, and need no
    // parse().
    bool is_plain(const ChatPrompt& prompt) const;

    const std::string& source() const;  // the template: Jinja text, or the name of a built-in one
    // The built-in format that writes what the template writes, or "jinja" if none does.
    std::string name() const;
    // What the template can do: "supports_tools", "supports_system_role", ...
    const std::map<std::string, bool>& capabilities() const;

    struct Impl;
    explicit ChatFormat(std::shared_ptr<const Impl> impl);

  private:
    std::shared_ptr<const Impl> impl_;
};

// A grammar (GBNF) of the JSON texts that fit a schema. Throws knap::Error with path and keyword
// when the schema is not JSON, is too large or asks for what a grammar cannot say.
std::string json_schema_to_gbnf(std::string_view schema);

}  // namespace knap

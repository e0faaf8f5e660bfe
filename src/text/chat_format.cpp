#include "text/chat_format.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "base/error.h"
#include "text/builtin_formats.h"
#include "text/chat_request.h"
#include "text/chat_template.h"
#include "text/control_tokens.h"
#include "text/grammar/json_schema.h"

namespace knap {

struct ChatParser {
    common_chat_parser_params params;
    std::vector<std::string> tools;  // their names
    ChatMessage given;               // what the end of the prompt says already
    bool is_plain = false;           // answers are all content
};

namespace {

ChatMessage from_common(const common_chat_msg& message) {
    ChatMessage result{"assistant", message.content, message.reasoning_content};
    for (const common_chat_tool_call& call : message.tool_calls) {
        result.tool_calls.push_back({call.id, call.name, call.arguments});
    }
    return result;
}

// Whether the prompt ends inside a thought, so that the answer begins with its rest.
bool opens_thinking(const common_chat_params& params) {
    const std::string& header = params.generation_prompt;
    const auto begin = params.thinking_start_tag.empty() ? std::string::npos
                                                         : header.rfind(params.thinking_start_tag);
    return begin != std::string::npos &&
           std::none_of(params.thinking_end_tags.begin(), params.thinking_end_tags.end(),
                        [&](const std::string& tag) {
                            return header.find(tag, begin) != std::string::npos;
                        });
}

// llama-common's parser of answers descends into JSON recursively. No call has so many levels.
constexpr int kMaxAnswerLevels = 200;

// Whether so many brackets are open at once, in strings or not.
bool nests_deeply(std::string_view text) {
    int n_open = 0;
    for (const char c : text) {
        if (c == '[' || c == '{') {
            if (++n_open > kMaxAnswerLevels) {
                return true;
            }
        } else if (c == ']' || c == '}') {
            n_open = std::max(n_open - 1, 0);
        }
    }
    return false;
}

// nullopt: the text does not fit the format.
std::optional<ChatMessage> parse_text(const common_chat_parser_params& params,
                                      std::string_view text,
                                      bool is_partial) {
    if (nests_deeply(text)) {
        return std::nullopt;
    }
    try {
        return from_common(common_chat_parse(std::string(text), is_partial, params));
    } catch (const std::exception&) {
        return std::nullopt;
    }
}

// Whether an answer without tools is its own content.
bool is_plain_format(const common_chat_params& params, const common_chat_parser_params& parser) {
    constexpr const char* kProbe = "1 < 2, [a] and *b*.\n";
    const auto parsed = parse_text(parser, kProbe, false);
    return !params.supports_thinking && params.thinking_start_tag.empty() && parsed &&
           *parsed == ChatMessage{"assistant", kProbe};
}

std::string without_prefix(const std::string& text, const std::string& prefix) {
    return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

}  // namespace

struct ChatFormat::Impl {
    Impl(const Tokenizer& tokens, std::string_view given)
        : tokenizer(tokens), controls(tokens), chat_template(tokens, given) {}

    void check_support(const ChatRequest& request) const;
    std::string calls_alone(const ChatRequest& request, const common_chat_params& params) const;
    Grammar grammar(const ChatRequest& request, const common_chat_params& params) const;
    void add_triggers(const common_chat_params& params, Grammar& grammar) const;
    std::shared_ptr<const ChatParser> parser(const ChatRequest& request,
                                             const common_chat_params& params) const;

    const Tokenizer& tokenizer;
    ControlTokens controls;
    ChatTemplate chat_template;
};

void ChatFormat::Impl::check_support(const ChatRequest& request) const {
    if (!request.tools.empty() && !chat_template.can("supports_tools") &&
        !chat_template.can("supports_tool_calls")) {
        fail("`.tools`: expected a chat template with tools, found one without");
    }
    if (request.continue_final && chat_template.is_builtin()) {
        fail("`.continue_final`: expected a chat template in Jinja, found the built-in ",
             chat_template.source());
    }
}

void ChatFormat::Impl::add_triggers(const common_chat_params& params, Grammar& grammar) const {
    for (const common_grammar_trigger& trigger : params.grammar_triggers) {
        switch (trigger.type) {
            case COMMON_GRAMMAR_TRIGGER_TYPE_TOKEN:
                grammar.trigger_tokens.push_back(trigger.token);
                break;
            case COMMON_GRAMMAR_TRIGGER_TYPE_WORD:
                grammar.trigger_patterns.push_back(regex_escape(trigger.value));
                break;
            case COMMON_GRAMMAR_TRIGGER_TYPE_PATTERN:
                grammar.trigger_patterns.push_back(trigger.value);
                break;
            case COMMON_GRAMMAR_TRIGGER_TYPE_PATTERN_FULL:
                grammar.trigger_patterns.push_back("^" + trigger.value + "$");
                break;
        }
    }
}

// Before a required call llama-common's grammar allows any text, in which a small model loses
// itself. The grammar of voluntary calls begins with the call. Empty: there is none, or the model
// may think first.
std::string ChatFormat::Impl::calls_alone(const ChatRequest& request,
                                          const common_chat_params& params) const {
    if (request.tool_choice != ToolChoice::required ||
        (request.enables_thinking && !params.thinking_start_tag.empty())) {
        return {};
    }
    ChatRequest voluntary = request;
    voluntary.tool_choice = ToolChoice::automatic;
    const common_chat_params other = chat_template.apply(voluntary);
    return other.grammar_lazy ? other.grammar : std::string();
}

Grammar ChatFormat::Impl::grammar(const ChatRequest& request,
                                  const common_chat_params& params) const {
    Grammar result{.text = params.grammar};
    const bool is_ours = result.text.empty();
    if (is_ours) {
        // Some formats leave schemas to the caller.
        result.text =
            request.json_schema.empty() ? request.grammar : schema_grammar(request.json_schema);
    } else if (params.grammar_lazy) {
        add_triggers(params, result);
    } else if (std::string calls = calls_alone(request, params); !calls.empty()) {
        result.text = std::move(calls);
    } else {
        result.prefix = tokenizer.encode(params.generation_prompt, false, true);
        // SPM may put a space first, which the template did not write.
        if (!result.prefix.empty() && tokenizer.piece(result.prefix.front()).starts_with(' ') &&
            !params.generation_prompt.starts_with(' ')) {
            result.prefix.erase(result.prefix.begin());
        }
    }
    if (!result.text.empty() && result.prefix.empty() && opens_thinking(params)) {
        result.starts_after = params.thinking_end_tags;
    }
    if (result.text.empty() && request.tool_choice == ToolChoice::required) {
        fail("`.tool_choice`: expected a chat template whose tool calls have a known form");
    }
    return result;
}

std::shared_ptr<const ChatParser> ChatFormat::Impl::parser(const ChatRequest& request,
                                                           const common_chat_params& params) const {
    auto result = std::make_shared<ChatParser>();
    result->params = common_chat_parser_params(params);
    result->params.reasoning_format =
        request.extracts_reasoning ? COMMON_REASONING_FORMAT_AUTO : COMMON_REASONING_FORMAT_NONE;
    for (const ChatTool& tool : request.tools) {
        result->tools.push_back(tool.name);
    }
    try {
        if (!params.parser.empty()) {
            result->params.parser.load(params.parser);
        }
    } catch (const std::exception& error) {
        fail("the chat template has no parser of answers: ", reason_of(error));
    }
    result->given = parse_text(result->params, "", true).value_or(ChatMessage());
    result->is_plain = request.tools.empty() && is_plain_format(params, result->params);
    return result;
}

std::shared_ptr<const ChatFormat::Impl> make_chat_format(const Tokenizer& tokenizer,
                                                         std::string_view chat_template) {
    return std::make_shared<const ChatFormat::Impl>(tokenizer, chat_template);
}

ChatFormat::ChatFormat(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

ChatPrompt ChatFormat::render(const ChatRequest& request) const {
    const ChatRequest checked = checked_request(request);
    impl_->check_support(checked);
    const common_chat_params params = impl_->chat_template.apply(checked);
    ChatPrompt prompt{.text = params.prompt,
                      .grammar = impl_->grammar(checked, params),
                      .stop = params.additional_stops,
                      .parser = impl_->parser(checked, params)};
    const GuardedRequest guarded =
        guard_request(checked, impl_->controls, impl_->chat_template.source());
    if (!guarded.mark.empty()) {
        prompt.text = impl_->chat_template.apply(guarded.request).prompt;
        prompt.plain = remove_marks(prompt.text, guarded.mark);
    }
    if (prompt.text.size() > kMaxChatBytes) {
        fail("the formatted messages: expected at most ", kMaxChatBytes, " bytes, found ",
             prompt.text.size());
    }
    prompt.tokens = tokens_from(prompt, 0);
    return prompt;
}

std::vector<Token> ChatFormat::tokens_from(const ChatPrompt& prompt, std::size_t offset) const {
    return encode_with_plain(impl_->tokenizer, impl_->controls, prompt.text, prompt.plain, offset);
}

ChatMessage ChatFormat::parse(const ChatPrompt& prompt,
                              std::string_view answer,
                              bool is_partial) const {
    KNAP_ASSERT(prompt.parser != nullptr, "a prompt comes from render()");
    const ChatParser& parser = *prompt.parser;
    auto parsed = parse_text(parser.params, answer, is_partial);
    if (!parsed) {
        return {"assistant", is_partial ? "" : std::string(answer)};
    }
    ChatMessage& message = *parsed;
    message.content = without_prefix(message.content, parser.given.content);
    message.reasoning = without_prefix(message.reasoning, parser.given.reasoning);
    const auto may_grow = [&](const ToolCall& call) {
        return call.arguments.empty() &&
               std::any_of(parser.tools.begin(), parser.tools.end(), [&](const std::string& name) {
                   return name != call.name && name.starts_with(call.name);
               });
    };
    if (is_partial && !message.tool_calls.empty() && may_grow(message.tool_calls.back())) {
        message.tool_calls.pop_back();
    }
    return message;
}

bool ChatFormat::is_plain(const ChatPrompt& prompt) const {
    return prompt.parser != nullptr && prompt.parser->is_plain;
}

std::string ChatFormat::name() const {
    if (impl_->chat_template.is_builtin()) {
        return source();
    }
    // Templates may add a system message, or refuse one: either conversation will do.
    for (const bool has_system : {true, false}) {
        const auto messages = probe_conversation(has_system);
        try {
            const auto text = render({.messages = {messages.begin(), messages.end()}}).text;
            const std::string begin = impl_->tokenizer.begin_of_sequence();
            if (const auto name = format_of(without_prefix(text, begin), has_system)) {
                return *name;
            }
        } catch (const Error&) {
        }
    }
    return "jinja";
}

const std::string& ChatFormat::source() const {
    return impl_->chat_template.source();
}

const std::map<std::string, bool>& ChatFormat::capabilities() const {
    return impl_->chat_template.capabilities();
}

}  // namespace knap

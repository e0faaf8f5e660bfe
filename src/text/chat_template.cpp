#include "text/chat_template.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "llama-common/log.h"
#include "llama.h"

#include "base/error.h"
#include "text/builtin_formats.h"
#include "text/stack_guard.h"
#include "text/template_nesting.h"
#include "text/time_limit.h"

namespace knap {
namespace {

constexpr std::chrono::seconds kMaxTime{1};
constexpr std::chrono::seconds kMaxWait{10};  // until a template that is out of time ends

// llama-common gives templates the date, with std::localtime(), which is not thread-safe: one
// template is executed at a time. One that is out of time keeps its turn until it ends, on another
// thread than the one that took it.
class Turn {
  public:
    // Returns false if another one has it for longer.
    [[nodiscard]] bool take_within(std::chrono::seconds limit) {
        std::unique_lock lock(mutex_);
        const bool is_free = is_free_again_.wait_for(lock, limit, [this] { return !is_taken_; });
        is_taken_ = true;
        return is_free;
    }
    void give_back() {
        {
            const std::lock_guard lock(mutex_);
            is_taken_ = false;
        }
        is_free_again_.notify_one();
    }

  private:
    std::mutex mutex_;
    std::condition_variable is_free_again_;
    bool is_taken_ = false;
};

// Never destroyed: a template that is out of time may outlive everything.
Turn& turn() {
    static Turn& instance = *new Turn;
    return instance;
}

constexpr const char* kTooDeep =
    "the chat template: expected it to fit the stack, found a recursion or a value that is too "
    "deep";

// Gives the turn back when it is destroyed: with the work that has it, also where that work could
// not even begin.
class TurnEnd {
  public:
    TurnEnd() = default;
    TurnEnd(TurnEnd&& other) noexcept : has_turn_(std::exchange(other.has_turn_, false)) {}
    TurnEnd& operator=(TurnEnd&&) = delete;
    ~TurnEnd() {
        if (has_turn_) {
            turn().give_back();
        }
    }

  private:
    bool has_turn_ = true;
};

// When the program ends, waits for a template that is out of time: it uses objects of llama-common
// that are destroyed after this one, which must therefore be made after them.
struct ExitGuard {
    ExitGuard() = default;
    ExitGuard(const ExitGuard&) = delete;
    ExitGuard& operator=(const ExitGuard&) = delete;
    ~ExitGuard() { static_cast<void>(turn().take_within(kMaxWait)); }
};

// A template that takes all its time goes on until it ends, also while the program does.
void fail_out_of_time(const char* task) {
    static const ExitGuard guard;
    fail("the chat template: expected at most ", kMaxTime.count(), " s to ", task, ", found more");
}

[[nodiscard]] TurnEnd take_turn() {
    if (!turn().take_within(kMaxWait)) {
        fail("the chat template is still busy with other messages after ", kMaxWait.count(), " s");
    }
    return {};
}

// Executes a template: one at a time, and for a second at most.
template <typename Work>
auto run_in_turn(Work work) {
    return run_within(kMaxTime, [end = take_turn(), work = std::move(work)] {
        const StackGuard guard(kTooDeep);
        return work();
    });
}

common_chat_templates_ptr read_unlimited(const llama_model* vocabulary,
                                         const std::string& source,
                                         bool is_own) {
    try {
        // The model's own is passed as none given: then a second one for tools is read too.
        return common_chat_templates_init(vocabulary, is_own ? "" : source);
    } catch (const std::exception&) {
        common_chat_template again(source, "", "");  // the first exception had lost its text
        throw;
    }
}

// llama-common finds out what a template can do by executing it, so reading takes time as well. The
// model is used at the very beginning only.
common_chat_templates_ptr read_template(const Tokenizer& tokenizer,
                                        const std::string& source,
                                        bool is_own) {
    // It would write to standard error, texts of users among it.
    common_log_set_verbosity_thold(-1);
    const llama_model* vocabulary = tokenizer.vocabulary();
    const char* for_tools = llama_model_chat_template(vocabulary, "tool_use");
    check_template_nesting(source);
    if (is_own && for_tools != nullptr) {
        check_template_nesting(for_tools);
    }
    std::optional<common_chat_templates_ptr> result;
    try {
        result = run_in_turn(
            [vocabulary, source, is_own] { return read_unlimited(vocabulary, source, is_own); });
    } catch (const Error&) {
        throw;
    } catch (const std::exception& error) {
        fail("the chat template cannot be read: ", reason_of(error));
    }
    if (!result) {
        fail_out_of_time("be read");
    }
    return std::move(*result);
}

common_chat_msg to_common(const ChatMessage& message) {
    common_chat_msg result;
    result.role = message.role;
    result.content = message.content;
    result.reasoning_content = message.reasoning;
    result.tool_call_id = message.tool_call_id;
    result.tool_name = message.tool_name;
    for (const ToolCall& call : message.tool_calls) {
        result.tool_calls.push_back({call.name, call.arguments, call.id});
    }
    return result;
}

common_chat_tool_choice to_common(ToolChoice choice) {
    switch (choice) {
        case ToolChoice::automatic:
            return COMMON_CHAT_TOOL_CHOICE_AUTO;
        case ToolChoice::none:
            return COMMON_CHAT_TOOL_CHOICE_NONE;
        case ToolChoice::required:
            return COMMON_CHAT_TOOL_CHOICE_REQUIRED;
    }
    KNAP_ASSERT(false, "every choice is listed");
    return COMMON_CHAT_TOOL_CHOICE_AUTO;
}

// Templates may insist on one system message, at the beginning. Returns nullopt if there is no
// later one.
std::optional<ChatRequest> with_one_system_message(const ChatRequest& request) {
    const auto is_system = [](const ChatMessage& message) {
        return message.role == "system" || message.role == "developer";
    };
    const auto& messages = request.messages;
    if (messages.empty() || std::none_of(messages.begin() + 1, messages.end(), is_system)) {
        return std::nullopt;
    }
    ChatRequest merged = request;
    merged.messages = {{"system", ""}};
    for (const ChatMessage& message : messages) {
        if (!is_system(message)) {
            merged.messages.push_back(message);
            continue;
        }
        std::string& text = merged.messages.front().content;
        text += (text.empty() ? "" : "\n\n") + message.content;
    }
    return merged;
}

}  // namespace

std::string reason_of(const std::exception& error) {
    constexpr std::string_view kLabel = "Error: ";
    std::string reason = error.what();
    if (const auto at = reason.rfind(kLabel); at != std::string::npos) {
        reason.erase(0, at + kLabel.size());
    }
    std::replace(reason.begin(), reason.end(), '\n', ' ');
    return reason.substr(0, 300);
}

ChatTemplate::ChatTemplate(const Tokenizer& tokenizer, std::string_view given)
    : source_(choose_template(given, tokenizer.chat_template())),
      // llama-common has Jinja for this name.
      is_builtin_(!given.empty() && given != "chatml" && source_.find('{') == std::string::npos),
      templates_(read_template(tokenizer, source_, given.empty())),
      capabilities_(common_chat_templates_get_caps(templates_.get())) {
    if (is_builtin_) {
        capabilities_["supports_string_content"] = true;
        capabilities_["supports_system_role"] = true;
    } else {
        source_ = common_chat_templates_source(templates_.get());
    }
}

common_chat_templates_inputs ChatTemplate::inputs(const ChatRequest& request) const {
    common_chat_templates_inputs result;
    for (const ChatMessage& message : request.messages) {
        result.messages.push_back(to_common(message));
    }
    for (const ChatTool& tool : request.tools) {
        result.tools.push_back({tool.name, tool.description, tool.parameters});
    }
    result.use_jinja = !is_builtin_;
    result.tool_choice = to_common(request.tool_choice);
    result.parallel_tool_calls =
        request.parallel_tool_calls.value_or(can("supports_parallel_tool_calls"));
    result.add_generation_prompt = request.open_answer && !request.continue_final;
    result.continue_final_message =
        request.continue_final ? COMMON_CHAT_CONTINUATION_AUTO : COMMON_CHAT_CONTINUATION_NONE;
    result.enable_thinking = request.enables_thinking;
    result.reasoning_format =
        request.extracts_reasoning ? COMMON_REASONING_FORMAT_AUTO : COMMON_REASONING_FORMAT_NONE;
    result.json_schema = request.json_schema;
    result.chat_template_kwargs = request.arguments;
    return result;
}

common_chat_params ChatTemplate::execute(const ChatRequest& request) const {
    auto result = run_in_turn([templates = templates_, inputs = inputs(request)] {
        return common_chat_templates_apply(templates.get(), inputs);
    });
    if (!result) {
        fail_out_of_time("format the messages");
    }
    return std::move(*result);
}

common_chat_params ChatTemplate::apply(const ChatRequest& request) const {
    std::string reason;
    try {
        return execute(request);
    } catch (const Error&) {
        throw;
    } catch (const std::exception& error) {
        reason = reason_of(error);
    }
    try {
        if (const auto merged = with_one_system_message(request)) {
            return execute(*merged);
        }
    } catch (const std::exception&) {  // the first reason is about the user's own messages
    }
    fail("the chat template refuses the messages: ", reason);
}

}  // namespace knap

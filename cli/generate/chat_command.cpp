#include "cli/generate/chat_command.h"

#include <functional>
#include <iostream>
#include <optional>
#include <utility>

#include <signal.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "cli/exit_code.h"
#include "cli/generate/conversation.h"
#include "cli/generate/draft_colors.h"
#include "cli/generate/line_reader.h"
#include "cli/load.h"
#include "cli/prompt.h"
#include "cli/report/report.h"
#include "cli/request.h"

namespace knap {
namespace {

constexpr const char* kHelp =
    "/reset  start a new conversation\n"
    "/stats  show speed, drafting, context and memory of the last answer\n"
    "/help   show this list\n"
    "/exit   quit, as Ctrl-D does; Ctrl-C stops an answer\n";

// Throws when the chat template is missing or unusable, before the user asks a question.
ChatFormat chat_format(const Engine& engine, const std::string& name) {
    if (engine.info().chat_template.empty() && name.empty()) {
        fail("the model has no chat template: choose one with --chat-template NAME");
    }
    ChatFormat format(engine, name);
    format.render({.messages = {{"user", "Hello"}}});
    return format;
}

// Prints the model's text to standard output, everything else to standard error.
class Chat {
  public:
    Chat(const Settings& settings, Engine engine, const Environment& environment, bool shows_draft)
        : settings_(settings),
          shows_draft_(shows_draft),
          engine_(std::move(engine)),
          session_(engine_),
          conversation_(chat_format(engine_, settings.chat_template),
                        settings.system,
                        [&settings](std::vector<ChatMessage> messages) {
                            return chat_request(settings, std::move(messages));
                        }),
          options_(generate_options(engine_, settings)),
          thoughts_(thoughts_output(environment)) {}

    int run();

  private:
    LineReader::Outcome read_line(std::string& line);
    LineReader::IdleWork idle_work();
    void obey(const std::string& command);
    void reply(const std::string& question);
    void print_statistics() const;

    const Settings& settings_;
    bool shows_draft_;
    Engine engine_;
    Session session_;
    Conversation conversation_;
    GenerateOptions options_;
    TextOutput output_;
    TextOutput thoughts_;
    LineReader reader_;
    std::optional<Result> last_result_;
    bool is_terminal_ = isatty(STDIN_FILENO) != 0;
    std::optional<int> exit_code_;  // set when the chat is over
};

int Chat::run() {
    if (is_terminal_) {
        std::cerr << "Type a message, or /help.\n";
    }
    std::string line;
    while (!exit_code_) {
        const auto outcome = read_line(line);
        if (outcome == LineReader::Outcome::end) {
            return kExitDone;
        }
        if (outcome == LineReader::Outcome::interrupted || line.empty()) {
            continue;
        }
        if (line.starts_with('/')) {
            obey(line);
        } else {
            reply(line);
        }
    }
    return *exit_code_;
}

// At a terminal's prompt, Ctrl-C discards the line and keeps the chat.
LineReader::Outcome Chat::read_line(std::string& line) {
    if (!is_terminal_) {
        return reader_.read(line);
    }
    const InterruptScope scope;
    std::cerr << "> " << std::flush;
    const auto outcome = reader_.read(line, scope.descriptor(), idle_work());
    if (scope.signal() == SIGTERM) {
        exit_code_ = kExitInterrupted;
    } else if (outcome == LineReader::Outcome::interrupted) {
        std::cerr << "\nType /exit or Ctrl-D to quit.\n";
    } else if (outcome == LineReader::Outcome::end) {
        std::cerr << '\n';
    }
    return outcome;
}

// Measures and searches while the user types.
LineReader::IdleWork Chat::idle_work() {
    if (!settings_.works_when_idle) {
        return {};
    }
    return [this, n_pieces = 0](const std::function<bool()>& is_over) mutable {
        const bool has_more = session_.use_idle_time(is_over);
        n_pieces += has_more ? 1 : 0;
        if (!has_more && n_pieces > 0 && !is_over()) {
            log_info("idle time: ", n_pieces, " pieces of work, and nothing is left to do");
        }
        return has_more;
    };
}

void Chat::obey(const std::string& command) {
    if (command == "/reset") {
        session_.reset();
        conversation_.reset();
        last_result_.reset();
        std::cerr << "Started a new conversation.\n";
    } else if (command == "/stats") {
        print_statistics();
    } else if (command == "/help") {
        std::cerr << kHelp;
    } else if (command == "/exit") {
        exit_code_ = kExitDone;
    } else {
        std::cerr << "Unknown command " << command << ". The commands are:\n" << kHelp;
    }
}

void Chat::reply(const std::string& question) {
    const auto prompt = conversation_.ask(question, session_.history());
    const auto n_ctx = static_cast<std::size_t>(engine_.config().n_ctx);
    if (prompt.size() >= n_ctx) {
        conversation_.withdraw();
        std::cerr << "The conversation does not fit the context: " << prompt.size()
                  << " tokens, and " << n_ctx
                  << " fit. Type /reset to start over, or restart with a larger -c.\n";
        return;
    }
    const GenerateOptions options = answer_options(options_, conversation_.asked());
    AnswerOutput answer =
        settings_.separates_thoughts
            ? AnswerOutput(output_, thoughts_, conversation_.format(), conversation_.asked())
            : AnswerOutput(output_);
    const InterruptScope scope;
    last_result_ = generate(session_, {prompt, options, &answer, shows_draft_}, scope);
    conversation_.answer(*last_result_);
    output_.end_line();
    if (last_result_->stop == StopReason::context) {
        std::cerr << "The context of " << n_ctx
                  << " tokens is full. Type /reset to start over, or restart with a larger -c.\n";
    }
    if (output_.is_closed()) {
        exit_code_ = kExitDone;
    } else if (scope.signal() == SIGTERM) {
        exit_code_ = kExitInterrupted;
    }
}

void Chat::print_statistics() const {
    if (last_result_) {
        std::cerr << statistics_table(*last_result_, session_.history().size(), engine_.config());
    } else {
        std::cerr << "No answer yet.\n";
    }
}

}  // namespace

CLI::App* add_chat(CLI::App& root, Settings& settings) {
    CLI::App* app = root.add_subcommand("chat", "Starts an interactive chat");
    add_model_flags(*app, settings);
    add_runtime_flags(*app, settings);
    add_chat_flags(*app, settings);
    add_generation_flags(*app, settings);
    add_reasoning_format_flag(*app, settings);
    add_sampling_flags(*app, settings);
    add_speculation_flags(*app, settings);
    add_idle_work_flag(*app, settings, "Speculation",
                       "measure costs and search for plans while you type, at a terminal");
    add_common_flags(*app, settings);
    app->footer(concat(describe_strategies(), "\nCommands inside a chat:\n", kHelp));
    return app;
}

int run_chat(const Settings& settings, const Environment& environment) {
    const bool shows_draft = shows_draft_colors(settings, environment);
    Engine engine = load_engine(settings.runtime, settings.hub, environment);
    return Chat(settings, std::move(engine), environment, shows_draft).run();
}

}  // namespace knap

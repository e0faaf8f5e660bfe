#include "cli/generate/run_command.h"

#include <iostream>
#include <optional>
#include <system_error>

#include "cli/exit_code.h"
#include "cli/flags/flag_group.h"
#include "cli/generate/draft_colors.h"
#include "cli/generate/logprob_list.h"
#include "cli/json_output.h"
#include "cli/load.h"
#include "cli/prompt.h"
#include "cli/report/report.h"
#include "cli/request.h"

namespace knap {
namespace {

void load_prompt_cache(Session& session, const std::filesystem::path& path) {
    std::error_code ignored;
    if (!path.empty() && std::filesystem::exists(path, ignored)) {
        session.load_prompt_cache(path);
    }
}

// Keeps a file that already held the whole prompt. (The last prompt token is always computed,
// because its logits give the first token of the answer.)
void save_prompt_cache(const Session& session,
                       const std::filesystem::path& path,
                       const Result& result) {
    std::error_code ignored;
    const bool is_current =
        result.n_prompt_reused + 1 >= result.n_prompt && std::filesystem::exists(path, ignored);
    if (!path.empty() && !is_current) {
        session.save_prompt_cache(path);
    }
}

void add_logprobs_flag(CLI::App& app, int& n_logprobs) {
    FlagGroup(app, "Output")
        .custom({"--logprobs", "N",
                 concat("log-probabilities of each token and of the N most probable, up to ",
                        kMaxLogprobs, "; needs --json"),
                 "none"},
                [&n_logprobs](const std::string& text) {
                    n_logprobs = parse_integer("--logprobs", text, {.min = 0, .max = kMaxLogprobs});
                });
}

void print_result(TextOutput& output,
                  const Result& result,
                  const RunPrompt& asked,
                  const std::optional<LogprobList>& logprobs,
                  const Settings& settings,
                  const Engine& engine) {
    if (settings.wants_json) {
        nlohmann::ordered_json object = to_json(result, engine.config());
        const ChatMessage message =
            asked.format ? asked.format->parse(asked.formatted, result.text, /*is_partial=*/false)
                         : ChatMessage{"assistant", result.text};
        object["content"] = message.content;
        object["reasoning"] = message.reasoning;
        if (logprobs) {
            object["logprobs"] = logprobs->entries();
        }
        write_json(output, object);
        return;
    }
    output.end_line();
    if (!output.is_closed()) {
        std::cerr << "knap: " << statistics_line(result) << std::endl;
    }
}

}  // namespace

CLI::App* add_run(CLI::App& root, Settings& settings) {
    CLI::App* app = root.add_subcommand("run", "Answers one prompt, or continues it with --raw");
    add_model_flags(*app, settings);
    add_runtime_flags(*app, settings);
    add_prompt_flags(*app, settings);
    add_prompt_cache_flag(*app, settings);
    add_chat_flags(*app, settings);
    add_generation_flags(*app, settings);
    add_reasoning_format_flag(*app, settings);
    add_sampling_flags(*app, settings);
    add_speculation_flags(*app, settings);
    add_json_flag(*app, settings);
    add_logprobs_flag(*app, settings.generate.n_logprobs);
    add_common_flags(*app, settings);
    app->footer(describe_strategies());
    return app;
}

int run_prompt(const Settings& settings, const Environment& environment) {
    const std::string prompt = read_prompt(settings);
    const bool shows_draft = shows_draft_colors(settings, environment);
    const bool has_logprobs = lists_logprobs(settings);
    Engine engine = load_engine(settings.runtime, settings.hub, environment);
    const RunPrompt asked = format_prompt(engine, settings, prompt);
    GenerateOptions options = generate_options(engine, settings);
    if (asked.format) {
        options = answer_options(std::move(options), asked.formatted);
    }
    Session session(engine);
    load_prompt_cache(session, settings.prompt_cache);

    TextOutput output;
    TextOutput thoughts = thoughts_output(environment);
    AnswerOutput answer = asked.format && settings.separates_thoughts
                              ? AnswerOutput(output, thoughts, *asked.format, asked.formatted)
                              : AnswerOutput(output);
    std::optional<LogprobList> logprobs;
    const InterruptScope scope;
    Request request{asked.tokens, options, settings.wants_json ? nullptr : &answer, shows_draft};
    if (has_logprobs) {
        logprobs.emplace(engine);
        request.on_token = [&](const TokenEvent& event) { logprobs->add(event); };
    }
    const Result result = generate(session, request, scope);
    print_result(output, result, asked, logprobs, settings, engine);
    save_prompt_cache(session, settings.prompt_cache, result);
    return scope.signal() != 0 ? kExitInterrupted : kExitDone;
}

}  // namespace knap

#include "cli/generate/run_command.h"

#include <iostream>
#include <system_error>

#include "cli/exit_code.h"
#include "cli/generate/draft_colors.h"
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

void print_result(TextOutput& output,
                  const Result& result,
                  const Settings& settings,
                  const Engine& engine) {
    if (settings.wants_json) {
        write_json(output, to_json(result, engine.config()));
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
    add_sampling_flags(*app, settings);
    add_speculation_flags(*app, settings);
    add_json_flag(*app, settings);
    add_common_flags(*app, settings);
    app->footer(describe_strategies());
    return app;
}

int run_prompt(const Settings& settings, const Environment& environment) {
    const std::string prompt = read_prompt(settings);
    const bool shows_draft = shows_draft_colors(settings, environment);
    Engine engine = load_engine(settings.runtime, environment);
    const GenerateOptions options = generate_options(engine, settings);
    const std::vector<Token> tokens = tokenize_prompt(engine, settings, prompt);
    Session session(engine);
    load_prompt_cache(session, settings.prompt_cache);

    TextOutput output;
    const InterruptScope scope;
    const Request request{tokens, options, settings.wants_json ? nullptr : &output, shows_draft};
    const Result result = generate(session, request, scope);
    print_result(output, result, settings, engine);
    save_prompt_cache(session, settings.prompt_cache, result);
    return scope.signal() != 0 ? kExitInterrupted : kExitDone;
}

}  // namespace knap

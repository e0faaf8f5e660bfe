#include "cli/cli.h"

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>
#include <new>
#include <sstream>

#include <CLI/CLI.hpp>

#include "knap/knap.h"

#include "base/log.h"
#include "cli/bench/command.h"
#include "cli/check/command.h"
#include "cli/device_output.h"
#include "cli/exit_code.h"
#include "cli/explain/command.h"
#include "cli/flags/arguments.h"
#include "cli/flags/flags.h"
#include "cli/flags/help.h"
#include "cli/flags/option_names.h"
#include "cli/generate/chat_command.h"
#include "cli/generate/run_command.h"
#include "cli/generate/text_output.h"
#include "cli/info_command.h"
#include "cli/interrupt.h"
#include "cli/make_model.h"
#include "cli/process/lost_file.h"
#include "cli/process/standard_streams.h"
#include "cli/profile/command.h"
#include "cli/report/command.h"
#include "cli/search/command.h"
#include "cli/serve/command.h"
#include "cli/worker_command.h"

namespace knap {
namespace {

// The commands, and the settings that their flags fill in.
struct CommandLine {
    CommandLine();
    CLI::App root{"Runs language models in GGUF format.", "knap"};
    Settings settings;
    InfoArgs info_args;
    CheckArgs check_args;
    ProfileArgs profile_args;
    ExplainArgs explain_args;
    SearchArgs search_args;
    BenchArgs bench_args;
    ReportArgs report_args;
    ServeArgs serve_args;
    WorkerConfig worker_config;
    MakeModelArgs make_model_args;
    CLI::App* run = nullptr;
    CLI::App* chat = nullptr;
    CLI::App* serve = nullptr;
    CLI::App* info = nullptr;
    CLI::App* check = nullptr;
    CLI::App* profile = nullptr;
    CLI::App* explain = nullptr;
    CLI::App* search = nullptr;
    CLI::App* bench = nullptr;
    CLI::App* report = nullptr;
    CLI::App* worker = nullptr;
    CLI::App* make_model = nullptr;
};

CommandLine::CommandLine() {
    root.formatter(std::make_shared<HelpFormatter>());
    root.set_help_flag("-h,--help", "print this help");
    root.set_version_flag("--version", concat("knap ", version()), "print the version");
    root.require_subcommand(1);
    run = add_run(root, settings);
    chat = add_chat(root, settings);
    serve = add_serve(root, serve_args);
    info = add_info(root, settings, info_args);
    check = add_check(root, settings, check_args);
    profile = add_profile(root, settings, profile_args);
    explain = add_explain(root, settings, explain_args);
    search = add_search(root, settings, search_args);
    bench = add_bench(root, settings, bench_args);
    report = add_report(root, report_args);
    worker = add_worker(root, worker_config);
    make_model = add_make_model(root, make_model_args);
    for (CLI::App* command : root.get_subcommands({})) {
        command->group("Commands");
    }
    // Set last: a subcommand inherits the root's footer when it is created.
    root.footer(
        "`knap COMMAND --help` lists the flags of a command.\n"
        "Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.");
}

int dispatch(const CommandLine& line, const Environment& environment) {
    if (*line.make_model) {
        return run_make_model(line.make_model_args);
    }
    if (*line.report) {
        return run_report(line.report_args);
    }
    if (*line.worker) {
        run_worker_command(line.worker_config);
    }
    const Settings& settings = *line.serve ? line.serve_args.settings : line.settings;
    if (settings.lists_devices) {
        return run_list_devices(settings.runtime.workers);
    }
    check_settings(settings);
    set_log(settings.is_verbose ? LogLevel::info : LogLevel::warning);
    if (*line.serve) {
        return run_serve(*line.serve, line.serve_args, environment);
    }
    if (*line.chat) {
        return run_chat(line.settings, environment);
    }
    if (*line.check) {
        return run_check(line.settings, line.check_args, environment);
    }
    if (*line.profile) {
        return run_profile(line.settings, line.profile_args, environment);
    }
    if (*line.explain) {
        return run_explain(line.settings, line.explain_args, environment);
    }
    if (*line.search) {
        return run_search(line.settings, line.search_args, environment);
    }
    if (*line.bench) {
        return run_bench(line.settings, line.bench_args, environment);
    }
    return *line.info ? run_info(line.settings, line.info_args, environment)
                      : run_prompt(line.settings, environment);
}

int parse_and_dispatch(const std::vector<std::string>& words, const Environment& environment) {
    CommandLine line;
    if (words.empty()) {
        std::cerr << line.root.help();
        return kExitUsage;
    }
    try {
        auto reversed = spell_out(line.root, words);
        std::ranges::reverse(reversed);  // CLI11 expects the last word first
        line.root.parse(std::move(reversed));
    } catch (const CLI::Success& request) {  // --help and --version
        std::ostringstream text;
        const int exit_code = line.root.exit(request, text);
        TextOutput().write(text.str());
        return exit_code;
    } catch (const CLI::ParseError& error) {
        throw UsageError(error.what());
    }
    return dispatch(line, environment);
}

// Text quoted from a file may contain anything; the message is still one line.
void print_error(std::string_view message, std::string_view hint = {}) {
    std::string text = with_flag_names(message);
    std::ranges::replace_if(
        text, [](unsigned char letter) { return letter < ' ' || letter == 0x7f; }, ' ');
    std::cerr << concat("knap: error: ", text, hint, "\n");
}

}  // namespace

int run_cli(const std::vector<std::string>& words, const Environment& environment) {
    occupy_standard_streams();
    install_signal_handlers();
    end_when_a_file_is_lost();
    try {
        return parse_and_dispatch(words, environment);
    } catch (const UsageError& error) {
        print_error(error.what(), " (see --help)");
        return kExitUsage;
    } catch (const InterruptedError& interruption) {
        std::cerr << concat("knap: ", interruption.what(), "\n");
        return kExitInterrupted;
    } catch (const std::bad_alloc&) {
        print_error("out of memory");
    } catch (const std::exception& error) {
        print_error(error.what());
    }
    return kExitFailed;
}

}  // namespace knap

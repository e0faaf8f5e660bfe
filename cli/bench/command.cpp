#include "cli/bench/command.h"

#include <algorithm>
#include <iostream>

#include "base/error.h"
#include "base/partial_file.h"
#include "cli/bench/measure.h"
#include "cli/bench/output.h"
#include "cli/bench/prompts.h"
#include "cli/exit_code.h"
#include "cli/flags/flag_group.h"
#include "cli/json_output.h"
#include "cli/load.h"
#include "tools/measure/bench_context.h"
#include "tools/measure/report/bench_file.h"
#include "tools/peer/peer_names.h"

namespace knap {
namespace {

constexpr const char* kNoPeer = "none";
constexpr const char* kDefaultStrategies = "autoregressive,lookup,knapspec";

// Leaves out duplicates, and plain decoding, which always takes part.
std::vector<Contender> contenders_of(const std::vector<std::string>& names) {
    std::vector<Contender> contenders;
    for (const std::string& name : names) {
        const bool is_new =
            std::ranges::find(contenders, name, &Contender::name) == contenders.end();
        if (is_new && name != plain_decoding().strategy) {
            contenders.push_back(parse_contender(name));
        }
    }
    return contenders;
}

std::vector<std::string> parse_strategies(const std::string& text) {
    std::vector<std::string> names = parse_words("--strategies", text);
    try {
        contenders_of(names);
    } catch (const Error& error) {
        fail_usage(error.what());
    }
    return names;
}

// Leaves out duplicates.
std::vector<std::string> parse_peers(const std::string& text) {
    std::vector<std::string> peers;
    if (text == kNoPeer) {
        return peers;
    }
    for (std::string& name : parse_words("--peer", text)) {
        if (!is_peer(name)) {
            fail_usage("--peer: expected ", kNoPeer, " or a list of ", peer_names(), ", found '",
                       name, "'");
        }
        if (std::ranges::find(peers, name) == peers.end()) {
            peers.push_back(std::move(name));
        }
    }
    return peers;
}

std::vector<RaceRule> parse_rules(const std::string& text) {
    std::vector<RaceRule> rules;
    for (const std::string& name : parse_words("--acceptance", text)) {
        rules.push_back({name, parse_choice("--acceptance", name, acceptance_rules())});
    }
    return rules;
}

// Reports the errors that can be found before the model is loaded.
void check_usage(const Settings& settings, const BenchArgs& args) {
    if (!args.rules.empty() && settings.generate.sampling.temperature == 0) {
        fail_usage(
            "--acceptance: expected --temp above 0, because greedy decoding has only one rule");
    }
    if (args.parallel > 1 && !args.resume.empty()) {
        fail_usage("--resume: expected --parallel 1, because prompts are measured together, found ",
                   args.parallel);
    }
    const auto drafting = std::ranges::find_if(
        args.peers, [](const std::string& peer) { return peer != kPlainPeer; });
    if (args.parallel > 1 && drafting != args.peers.end()) {
        fail_usage("--peer: expected ", kNoPeer, " or ", kPlainPeer, " with --parallel ",
                   args.parallel, ", because other peers answer one prompt at a time, found '",
                   *drafting, "'");
    }
    for (const std::filesystem::path& path : args.outputs) {
        check_place(path);
    }
}

RaceOptions race_options(const Settings& settings, const BenchArgs& args) {
    const SamplingOptions& sampling = settings.generate.sampling;
    RaceOptions options{
        .contenders = contenders_of(args.strategies),
        .rules = args.rules,
        .sampling = sampling,
        .assume_acceptance = settings.generate.speculation.assume_acceptance,
        .n_predict = args.n_predict,
        .n_turns = args.repeat,
        .peers = args.peers,
        .fresh_strategies = args.fresh_strategies,
    };
    if (options.rules.empty() && sampling.temperature == 0) {
        options.rules = {RaceRule()};
    } else if (options.rules.empty()) {
        const auto& [name, rule] = acceptance_rules().front();
        options.rules = {{std::string(name), rule}};
    }
    return options;
}

bool uses_builtin(const BenchArgs& args) {
    return args.data.empty() && args.depths.empty();
}

// A report of this benchmark without rows.
BenchReport planned_report(const Engine& engine, const RaceOptions& race, const BenchArgs& args) {
    BenchReport report = describe_bench(engine);
    BenchSettings& settings = report.settings;
    settings.n_predict = args.n_predict;
    settings.parallel = args.parallel;
    settings.limit = args.limit;
    settings.skip = args.skip;
    settings.max_prompt_tokens = args.max_prompt_tokens;
    settings.repeat = args.repeat;
    settings.depths = args.depths;
    settings.strategies = {plain_decoding().strategy};
    for (const Contender& contender : race.contenders) {
        settings.strategies.push_back(contender.name);
    }
    for (const RaceRule& rule : race.rules) {
        settings.acceptance.push_back(rule.name);
    }
    settings.sampling = race.sampling;
    if (race.assume_acceptance >= 0) {
        settings.assume_acceptance = race.assume_acceptance;
    }
    settings.peers = args.peers;
    settings.fresh_strategies = args.fresh_strategies;
    for (const std::string& source : args.data) {
        settings.data.push_back(std::filesystem::path(source).filename().string());
    }
    if (uses_builtin(args)) {
        settings.data = {kBuiltinData};
    }
    return report;
}

BenchPrompts collect_prompts(const Engine& engine,
                             const BenchArgs& args,
                             const std::vector<BenchData>& data) {
    BenchPromptCollector collector(engine, args.n_predict, args.max_prompt_tokens);
    for (const BenchData& one : data) {
        collector.add_data(one);
    }
    if (uses_builtin(args)) {
        collector.add_builtin(args.limit, args.skip);
    }
    for (const int depth : args.depths) {
        collector.add_synthetic(depth);
    }
    BenchPrompts prompts = collector.take();
    if (prompts.prompts.empty()) {
        fail("expected prompts that fit the context of ", engine.config().n_ctx, ", found none");
    }
    return prompts;
}

// The output files, and the file of --resume, which is updated as well.
std::vector<std::filesystem::path> outputs_of(const BenchArgs& args) {
    std::vector<std::filesystem::path> outputs = args.outputs;
    if (!args.resume.empty() && std::ranges::find(outputs, args.resume) == outputs.end()) {
        outputs.push_back(args.resume);
    }
    return outputs;
}

int interrupted(const BenchReport& report,
                std::size_t n_prompts,
                const std::vector<std::filesystem::path>& outputs) {
    if (report.settings.parallel > 1) {
        std::cerr
            << "knap: interrupted; there are no rows, because prompts are measured together\n";
        return kExitInterrupted;
    }
    const std::size_t n_done = report.rows.size() / report.settings.n_rows();
    const auto file = std::ranges::find_if(outputs, is_json_output);
    std::cerr << concat(
        "knap: interrupted after ", n_done, " of ", n_prompts, " prompts; ",
        file == outputs.end()
            ? "they are not saved, use -o FILE.json to save them\n"
            : concat("they are kept in ", file->string(), ", run the same command with --resume ",
                     file->string(), " to continue\n"));
    return kExitInterrupted;
}

void add_measuring_flags(CLI::App& app, BenchArgs& args) {
    FlagGroup group(app, "Bench");
    group.custom({"--data", "FILE[:TASK],...",
                  "prompts: JSON Lines with a field `prompt`; repeatable", "built-in prompts"},
                 [&](const std::string& text) {
                     std::ranges::copy(parse_words("--data", text), std::back_inserter(args.data));
                 });
    group.custom(
        {"--strategies", "LIST", "strategies to measure, NAME[(OPTIONS)][/DRAFT_MAX[/PLAN]],...",
         kDefaultStrategies},
        [&](const std::string& text) { args.strategies = parse_strategies(text); });
    group.integer("-n,--n-predict,--predict", args.n_predict, {.min = 2},
                  "maximum number of tokens to generate after each prompt");
    group.integer("--limit", args.limit, {.min = 0}, "maximum number of prompts per file; 0: all");
    group.integer("--skip", args.skip, {.min = 0}, "prompts to leave out first, per file");
    group.integer("--max-prompt-tokens", args.max_prompt_tokens, {.min = 0},
                  "cut the end of the document in longer prompts; 0: never");
    group.integer("-r,--repeat", args.repeat, {.min = 1}, "turns per strategy on each prompt");
    group.integer("--parallel", args.parallel, {.min = 1, .max = kMaxParallel},
                  "sessions that serve the prompts at once");
    group.custom({"-d,-p,--n-depth,--n-prompt", "N,N,...",
                  "synthetic prompts of N tokens: prefill, and decoding after it", "none"},
                 [&](const std::string& text) {
                     args.depths = parse_integers("--n-depth", text, {.min = 1});
                 });
    group.custom(
        {"--peer", "LIST",
         concat("also measure libllama, plainly or with drafts of llama.cpp: ", peer_names()),
         kNoPeer},
        [&](const std::string& text) { args.peers = parse_peers(text); });
    group.toggle("--fresh-strategies", args.fresh_strategies,
                 "start every prompt with new strategies, which have learned nothing");
}

void add_output_flags(CLI::App& app, BenchArgs& args) {
    FlagGroup group(app, "Output");
    group.custom(
        {"-o,--output", "FILE", "write FILE.json, FILE.csv or FILE.md; repeatable", "none"},
        [&](const std::string& text) {
            args.outputs.push_back(parse_bench_output("--output", text));
        });
    group.custom({"--resume", "FILE.json", "continue the interrupted run in FILE.json", "none"},
                 [&](const std::string& text) { args.resume = parse_path("--resume", text); });
}

}  // namespace

CLI::App* add_bench(CLI::App& root, Settings& settings, BenchArgs& args) {
    CLI::App* app = root.add_subcommand(
        "bench", "Compares strategies with plain decoding on prompts, for `knap report`");
    args.strategies = parse_strategies(kDefaultStrategies);
    add_model_flags(*app, settings);
    add_runtime_flags(*app, settings);
    add_measuring_flags(*app, args);
    add_temperature_flags(*app, settings, "Sampling");
    FlagGroup(*app, "Sampling")
        .custom({"--acceptance", "LIST",
                 "acceptance rules to measure: " + words_of(acceptance_rules()), "shared-noise"},
                [&](const std::string& text) { args.rules = parse_rules(text); });
    add_assumption_flag(*app, settings);
    add_profile_flag(*app, settings);
    // Off, so that measurements do not depend on earlier ones.
    add_memory_flag(*app, settings, false);
    add_output_flags(*app, args);
    add_json_flag(*app, settings);
    add_common_flags(*app, settings);
    app->footer(
        "The prefill of each prompt runs once; then plain decoding and the strategies take turns.\n"
        "Texts must equal those of plain decoding, except at near ties. Every prompt updates "
        "FILE.\n"
        "With --parallel, every strategy serves all prompts on several sessions at once.\n"
        "Exit codes: 0 done, 1 a text differs, or an error; 130 interrupted.");
    return app;
}

int run_bench(const Settings& settings, const BenchArgs& args, const Environment& environment) {
    check_usage(settings, args);
    const auto data = read_bench_data(args.data, args.limit, args.skip);
    RuntimeConfig config = settings.runtime;
    config.n_parallel = args.parallel;
    Engine engine = load_engine(std::move(config), settings.hub, environment);
    const RaceOptions options = race_options(settings, args);
    BenchReport report = planned_report(engine, options, args);
    const EarlierRows earlier =
        args.resume.empty() ? EarlierRows{} : load_rows(args.resume, report);
    BenchPrompts prompts = collect_prompts(engine, args, data);
    report.skipped = std::move(prompts.skipped);

    const auto outputs = outputs_of(args);
    TextOutput output;
    TextOutput* const screen = settings.wants_json ? nullptr : &output;
    if (args.parallel > 1) {
        measure_together(engine, options, prompts.prompts, outputs, screen, report);
    } else {
        measure_in_turn(engine, options, prompts.prompts, earlier, outputs, screen, report);
    }
    if (settings.wants_json) {
        write_json(output, to_json(report));
    }
    return report.is_complete ? kExitDone : interrupted(report, prompts.prompts.size(), outputs);
}

}  // namespace knap

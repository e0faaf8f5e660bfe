#include "cli/search/command.h"

#include <algorithm>
#include <array>
#include <iostream>

#include "base/error.h"
#include "base/partial_file.h"
#include "cli/exit_code.h"
#include "cli/flags/flag_group.h"
#include "cli/interrupt.h"
#include "cli/json_output.h"
#include "cli/load.h"
#include "cli/progress.h"
#include "cli/prompt.h"
#include "cli/report/report.h"
#include "cli/search/report.h"
#include "runtime/engine_impl.h"
#include "runtime/files/known_costs.h"
#include "runtime/files/machine_fingerprint.h"
#include "tools/offline_search/offline_search_file.h"
#include "tools/offline_search/plan_timer.h"
#include "tools/offline_search/search_trials.h"

namespace knap {
namespace {

constexpr std::array kMethods{SearchMethod::draft_verify, SearchMethod::layerskip};

SearchMethod parse_method(const std::string& text) {
    const auto found =
        std::ranges::find(kMethods, text, [](SearchMethod method) { return to_string(method); });
    if (found == kMethods.end()) {
        fail_usage("--method: expected draft-verify|layerskip, found '", text, "'");
    }
    return *found;
}

// Reports the errors that can be found before the model is loaded.
void check_usage(const SearchArgs& args) {
    if (!args.method) {
        fail_usage("--method: expected draft-verify|layerskip, found none");
    }
    if (args.data.empty()) {
        fail_usage("--data: expected a file of prompts, found none");
    }
    const bool is_grid = *args.method == SearchMethod::layerskip;
    if (!is_grid && !args.exit_layers.empty()) {
        fail_usage("--exits: expected --method layerskip, found draft-verify");
    }
    if (!is_grid && !args.lengths.empty()) {
        fail_usage("--lengths: expected --method layerskip, found draft-verify");
    }
    if (is_grid && args.seed) {
        fail_usage("--seed: expected --method draft-verify, found layerskip");
    }
    if (!args.output.empty()) {
        check_place(args.output);
    }
}

void check_exit_layers(const std::vector<int>& layers, int n_layers) {
    const int largest = std::ranges::max(layers);
    if (largest > n_layers) {
        fail("--exits: expected layers from 1 to ", n_layers, " of the model, found ", largest);
    }
}

// A new search, without trials.
OfflineSearch planned_search(const Engine& engine,
                             const SearchArgs& args,
                             const std::vector<std::vector<Token>>& prompts) {
    OfflineSearch search{
        .model = plans_model(impl_of(engine)),
        .settings = {.method = *args.method,
                     .n_predict = args.n_predict,
                     .n_prompts = static_cast<int>(prompts.size()),
                     .prompts_hash = hash_of(prompts),
                     .machine_hash = machine_fingerprint(impl_of(engine)).hash(),
                     .seed = args.seed.value_or(0)},
    };
    if (*args.method == SearchMethod::layerskip) {
        search.settings.exit_layers = args.exit_layers.empty()
                                          ? default_exit_layers(search.model.n_layers)
                                          : args.exit_layers;
        search.settings.lengths = args.lengths.empty() ? default_draft_lengths() : args.lengths;
        check_exit_layers(search.settings.exit_layers, search.model.n_layers);
    }
    return search;
}

int wanted_trials(const SearchSettings& settings, int n_requested) {
    return n_requested > 0 ? std::min(n_requested, max_trials(settings)) : default_trials(settings);
}

bool read_prompts(PlanTimer& timer) {
    ProgressBar bar("prompts");
    return timer.read_prompts([&](double fraction) { bar.update(fraction); });
}

// Saves after every trial. Returns false when interrupted.
bool try_plans(OfflineSearch& search,
               int n_trials,
               PlanTimer& timer,
               const std::filesystem::path& output) {
    ProgressBar bar("search");
    const auto show = [&] {
        const PlanTrial* best = best_trial(search);
        bar.update(
            static_cast<double>(search.trials.size()) / n_trials,
            best == nullptr ? "" : concat("best ", format_fixed(best->measured.speed, 2), "x"));
    };
    show();
    return run_trials(
        search, n_trials,
        [&](const SpeculationOptions& speculation) { return timer.measure(speculation); },
        [&] {
            if (!output.empty()) {
                save_search(output, search);
            }
            show();
        });
}

int interrupted(const OfflineSearch& search, int n_trials, const std::filesystem::path& output) {
    const auto done =
        concat("knap: interrupted after ", search.trials.size(), " of ", n_trials, " trials; ");
    std::cerr << done
              << (output.empty() ? "they are not saved, use -o FILE to save them\n"
                                 : concat("they are saved in ", output.string(),
                                          ", run the same command to continue\n"));
    return kExitInterrupted;
}

}  // namespace

CLI::App* add_search(CLI::App& root, Settings& settings, SearchArgs& args) {
    CLI::App* app = root.add_subcommand(
        "search", "Searches for a plan to draft with, by timing plans on prompts");
    add_model_flags(*app, settings);
    add_runtime_flags(*app, settings);
    FlagGroup group(*app, "Search");
    group.custom({"--method", "NAME",
                  "draft-verify: search for modules to skip; layerskip: for an exit layer", ""},
                 [&](const std::string& text) { args.method = parse_method(text); });
    group.custom({"--data", "FILE", "prompts: JSON Lines with a field `prompt`", ""},
                 [&](const std::string& text) { args.data = parse_path("--data", text); });
    group.integer("--limit", args.limit, {.min = 0}, "maximum number of prompts; 0: all");
    group.integer("-n,--n-predict,--predict", args.n_predict, {.min = 2},
                  "tokens to generate after each prompt");
    group.integer("--trials", args.n_trials, {.min = 0},
                  "number of plans to try; 0: 100 for draft-verify, all for layerskip");
    group.custom(
        {"-s,--seed", "N", "draft-verify: seed of the search", "0"},
        [&](const std::string& text) { args.seed = parse_integer("--seed", text, {.min = 0}); });
    group.custom(
        {"--exits", "N,N,...", "layerskip: exit layers to try", "about eight, evenly spaced"},
        [&](const std::string& text) {
            args.exit_layers = parse_integers("--exits", text, {.min = 1});
        });
    group.custom({"--lengths", "N,N,...", "layerskip: draft lengths to try", "2,4,6,8"},
                 [&](const std::string& text) {
                     args.lengths = parse_integers("--lengths", text, {.min = 1, .max = kMaxDraft});
                 });
    group.custom(
        {"-o,--output", "FILE", "save the search in FILE, or continue the search in it", "none"},
        [&](const std::string& text) { args.output = parse_path("--output", text); });
    add_json_flag(*app, settings);
    add_common_flags(*app, settings);
    app->footer(
        "The score of a plan is its speed relative to plain decoding; the two take turns on every\n"
        "prompt. FILE is saved after every trial: the same command continues after an interrupt,\n"
        "or with more --trials. `knap run --strategy NAME --plan-file FILE` drafts with the best\n"
        "plan.");
    return app;
}

int run_search(const Settings& settings, const SearchArgs& args, const Environment& environment) {
    check_usage(args);
    const auto texts = read_prompt_data(args.data, args.limit);
    Engine engine = load_engine(settings.runtime, settings.hub, environment);
    auto prompts = tokenize_data(engine, settings, texts, args.n_predict);
    OfflineSearch search = planned_search(engine, args, prompts);
    const int n_trials = wanted_trials(search.settings, args.n_trials);
    if (!args.output.empty()) {
        load_trials(args.output, search);
    }
    const InterruptScope scope;
    bool is_whole = static_cast<int>(search.trials.size()) >= n_trials;
    if (!is_whole) {
        PlanTimer timer(engine, std::move(prompts), args.n_predict,
                        [&scope] { return scope.signal() != 0; });
        is_whole = read_prompts(timer) && try_plans(search, n_trials, timer, args.output);
    }
    TextOutput output;
    output.write(settings.wants_json ? to_text(to_json(search))
                                     : to_table(search, engine.config(), args.output));
    return is_whole ? kExitDone : interrupted(search, n_trials, args.output);
}

}  // namespace knap

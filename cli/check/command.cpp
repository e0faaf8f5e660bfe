#include "cli/check/command.h"

#include <algorithm>
#include <iostream>
#include <optional>

#include "cli/check/long_check.h"
#include "cli/check/prompts.h"
#include "cli/check/report.h"
#include "cli/exit_code.h"
#include "cli/flags/flag_group.h"
#include "cli/interrupt.h"
#include "cli/json_output.h"
#include "cli/load.h"
#include "cli/progress.h"
#include "cli/prompt.h"

namespace knap {
namespace {

std::vector<DataPrompt> read_texts(const CheckArgs& args) {
    if (!args.data.empty()) {
        return read_prompt_data(args.data, args.limit);
    }
    auto texts = default_check_prompts();
    if (args.limit > 0) {
        texts.resize(std::min(texts.size(), static_cast<std::size_t>(args.limit)));
    }
    return texts;
}

std::vector<CheckPrompt> tokenize(const Engine& engine,
                                  const Settings& settings,
                                  const std::vector<DataPrompt>& texts,
                                  int n_predict) {
    auto tokens = tokenize_data(engine, settings, texts, n_predict);
    std::vector<CheckPrompt> prompts;
    for (std::size_t i = 0; i < texts.size(); ++i) {
        prompts.push_back({texts[i].id, std::move(tokens[i])});
    }
    return prompts;
}

// Runs a stage of the check under its own progress bar. Returns nullopt when cancelled.
template <typename Stage>
auto watched(const char* label, const InterruptScope& scope, Stage stage) {
    ProgressBar bar(label);
    return stage(CheckObserver{
        .on_progress = [&bar](double fraction) { bar.update(fraction); },
        .is_cancelled = [&scope] { return scope.signal() != 0; },
    });
}

std::optional<CheckReport> check(Engine& engine,
                                 const std::vector<CheckPrompt>& prompts,
                                 int n_predict,
                                 const InterruptScope& scope) {
    auto rows = watched("rows", scope, [&](const CheckObserver& observer) {
        return check_rows(engine, prompts.front().tokens, observer);
    });
    if (!rows) {
        return std::nullopt;
    }
    const auto error = watched("rounding", scope, [&](const CheckObserver& observer) {
        return measure_verifications(engine, prompts, observer);
    });
    if (!error) {
        return std::nullopt;
    }
    auto peer = watched("libllama", scope, [&](const CheckObserver& observer) {
        return check_against_libllama(engine, prompts, observer);
    });
    if (!peer) {
        return std::nullopt;
    }
    const LosslessOptions options{.contenders = lossless_contenders(engine),
                                  .n_predict = n_predict,
                                  .near_tie_gap = near_tie_bound(*error)};
    auto lossless = watched("strategies", scope, [&](const CheckObserver& observer) {
        return check_lossless(engine, prompts, options, observer);
    });
    if (!lossless) {
        return std::nullopt;
    }
    return CheckReport{
        .config = engine.config(),
        .n_prompts = static_cast<int>(prompts.size()),
        .n_predict = n_predict,
        .rows = std::move(*rows),
        .error = *error,
        .peer = *peer,
        .lossless = std::move(*lossless),
    };
}

}  // namespace

CLI::App* add_check(CLI::App& root, Settings& settings, CheckArgs& args) {
    CLI::App* app = root.add_subcommand(
        "check", "Checks batches, logits and the text of every strategy on this machine");
    add_model_flags(*app, settings);
    add_runtime_flags(*app, settings);
    FlagGroup group(*app, "Check");
    group.custom(
        {"--data", "FILE", "prompts: JSON Lines with a field `prompt`", "built-in prompts"},
        [&](const std::string& text) { args.data = text; });
    group.integer("--limit", args.limit, {.min = 0}, "maximum number of prompts; 0: all");
    group.integer("-n,--n-predict,--predict", args.n_predict, {.min = 1},
                  "tokens to generate after each prompt");
    FlagGroup long_group(*app, "Long check");
    long_group.integer("--tokens", args.n_tokens, {.min = 0},
                       "compare this many tokens of random requests with plain decoding, and "
                       "nothing else; draws cache types, -ub, sessions and threads up to -t; 0: "
                       "only what --record has");
    long_group.custom(
        {"--record", "FILE", "results of the long check, which goes on after those in FILE", ""},
        [&](const std::string& text) { args.record = parse_path("--record", text); });
    long_group.integer("-s,--seed", args.seed, {.min = 0}, "seed of the long check");
    long_group.custom({"--case", "N", "repeat one case of the long check", ""},
                      [&](const std::string& text) {
                          args.only_case = parse_integer("--case", text, {.min = 0});
                      });
    add_json_flag(*app, settings);
    add_common_flags(*app, settings);
    app->footer(
        "Exit codes: 0 every text matches, near ties aside; 1 a text differs, logits differ by "
        "more than rounding explains, or an error.");
    return app;
}

int run_check(const Settings& settings, const CheckArgs& args, const Environment& environment) {
    const std::vector<DataPrompt> texts = read_texts(args);
    if (args.is_long()) {
        return run_long_check(settings, args, texts, environment);
    }
    Engine engine = load_engine(settings.runtime, settings.hub, environment);
    const auto prompts = tokenize(engine, settings, texts, args.n_predict);
    const InterruptScope scope;
    const auto report = check(engine, prompts, args.n_predict, scope);
    if (!report) {
        std::cerr << "knap: the check was interrupted\n";
        return kExitInterrupted;
    }
    TextOutput output;
    if (settings.wants_json) {
        write_json(output, to_json(*report));
    } else {
        output.write(to_table(*report));
    }
    return report->is_ok() ? kExitDone : kExitFailed;
}

}  // namespace knap

#include "cli/explain/command.h"

#include <iostream>
#include <optional>
#include <string>

#include "base/log.h"
#include "base/partial_file.h"
#include "cli/exit_code.h"
#include "cli/explain/report.h"
#include "cli/flags/flag_group.h"
#include "cli/generate/draft_colors.h"
#include "cli/interrupt.h"
#include "cli/json_output.h"
#include "cli/load.h"
#include "cli/plot.h"
#include "cli/progress.h"
#include "cli/prompt.h"
#include "tools/explain/explain.h"

namespace knap {
namespace {

constexpr PictureSize kPlanSize{.width = 1200, .height = 280};

std::filesystem::path parse_output(const std::string& text) {
    if (!is_picture(text)) {
        fail_usage("--output: expected a file that ends in .svg or .png, found '", text, "'");
    }
    return text;
}

// Shows one progress bar per stage.
class StageBar {
  public:
    void update(std::string_view stage, double fraction) {
        if (stage != stage_) {
            stage_ = stage;
            bar_.emplace(stage_);
        }
        bar_->update(fraction);
    }

  private:
    std::string stage_;
    std::optional<ProgressBar> bar_;
};

// Returns nullopt when interrupted.
std::optional<Explanation> watched_explain(Engine& engine,
                                           const std::vector<Token>& prompt,
                                           int n_predict) {
    const InterruptScope scope;
    StageBar bar;
    return explain(engine, prompt, {.n_predict = n_predict},
                   {.on_progress = [&](std::string_view stage,
                                       double fraction) { bar.update(stage, fraction); },
                    .is_cancelled = [&] { return scope.signal() != 0; }});
}

void draw(const std::filesystem::path& path, const Explanation& explanation) {
    if (!has_plan(explanation)) {
        log_warning("--output: there is no plan to draw, so ", path.string(), " is not written");
        return;
    }
    draw_picture(path, explanation_plot_script(explanation), kPlanSize);
}

}  // namespace

CLI::App* add_explain(CLI::App& root, Settings& settings, ExplainArgs& args) {
    CLI::App* app = root.add_subcommand(
        "explain", "Shows which plans could draft for a prompt, their costs, and the choice made");
    add_model_flags(*app, settings);
    add_runtime_flags(*app, settings);
    add_prompt_flags(*app, settings);
    add_chat_flags(*app, settings);
    FlagGroup group(*app, "Explain");
    group.integer("-n,--n-predict,--predict", args.n_predict, {.min = 1},
                  "maximum number of tokens to generate with each candidate");
    group.custom({"-o,--output", "FILE", "draw the plan: FILE.svg or FILE.png", "none"},
                 [&](const std::string& text) { args.output = parse_output(text); });
    add_profile_flag(*app, settings);
    add_memory_flag(*app, settings, true);
    add_json_flag(*app, settings);
    add_common_flags(*app, settings);
    app->footer(
        "Costs come from the saved profile (`knap profile`). Without one, they are measured\n"
        "first, which takes a few seconds. What earlier runs have learned is shown as well; the\n"
        "runs of `knap explain` add to it (--memory).");
    return app;
}

int run_explain(const Settings& settings, const ExplainArgs& args, const Environment& environment) {
    const std::string text = read_prompt(settings);
    if (!args.output.empty()) {
        require_gnuplot();
        check_place(args.output);
    }
    Engine engine = load_engine(settings.runtime, settings.hub, environment);
    const std::vector<Token> prompt = format_prompt(engine, settings, text).tokens;
    const auto explanation = watched_explain(engine, prompt, args.n_predict);
    if (!explanation) {
        std::cerr << "knap: the explanation was interrupted\n";
        return kExitInterrupted;
    }
    TextOutput output;
    output.write(settings.wants_json ? to_text(to_json(*explanation, engine.config()))
                                     : to_text(*explanation, engine.config(),
                                               can_show_colors(settings, environment)));
    if (!args.output.empty()) {
        draw(args.output, *explanation);
    }
    return kExitDone;
}

}  // namespace knap

#include "cli/profile/command.h"

#include <algorithm>
#include <iostream>
#include <iterator>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "base/partial_file.h"
#include "base/text_file.h"
#include "cli/exit_code.h"
#include "cli/flags/flag_group.h"
#include "cli/interrupt.h"
#include "cli/json_output.h"
#include "cli/load.h"
#include "cli/plot.h"
#include "cli/profile/axes.h"
#include "cli/profile/plot.h"
#include "cli/profile/report.h"
#include "cli/progress.h"
#include "runtime/engine_impl.h"
#include "runtime/files/known_costs.h"
#include "runtime/files/profile_file.h"
#include "tools/profile/profiling.h"

namespace knap {
namespace {

// Warns when the profile is not saved as it was measured.
void warn_of_profile(const ProfileReport& report) {
    const auto warn_of_noise = [&](const char* consequence) {
        log_warning("the median error of the fit is ",
                    static_cast<int>(100 * report.costs.quality().median_error),
                    " %, so the machine was busy: ", consequence);
    };
    switch (report.kept.origin) {
        case KeptProfile::Origin::measured:
        case KeptProfile::Origin::extended:
        case KeptProfile::Origin::better:
            break;
        case KeptProfile::Origin::contradicted:
            log_warning("the saved times at contexts above ", longest_context(report.profile),
                        " are dropped: at shorter contexts they disagree with the new ones");
            break;
        case KeptProfile::Origin::saved:
            warn_of_noise("the saved profile stays as it was");
            break;
        case KeptProfile::Origin::none:
            warn_of_noise("nothing is saved, run it again on an idle machine");
            break;
    }
}

std::filesystem::path parse_output(const std::string& text) {
    std::filesystem::path path = text;
    if (path.extension() != ".json" && !is_picture(path)) {
        fail_usage("--output: expected a file that ends in .json, .svg or .png, found '", text,
                   "'");
    }
    return path;
}

// Reports the errors that can be found before minutes are spent on measuring.
void check_usage(const Settings& settings, const ProfileArgs& args) {
    if (args.finds_plans && !settings.prompt_file) {
        fail_usage("--plans: expected a text to search on (-f FILE), found none");
    }
    if (!args.finds_plans && settings.prompt_file) {
        fail_usage("--file: expected --plans, the only use of a text, found none");
    }
    if (std::ranges::any_of(args.outputs, is_picture)) {
        require_gnuplot();
    }
    for (const std::filesystem::path& output : args.outputs) {
        check_place(output);
    }
}

// The text for --plans; empty without it.
std::vector<Token> read_text(const Engine& engine, const Settings& settings) {
    if (!settings.prompt_file) {
        return {};
    }
    auto tokens = engine.tokenize(read_text_file(*settings.prompt_file, "text"));
    plan_contexts(static_cast<int>(tokens.size()), engine.config().n_ctx);  // throws when too short
    return tokens;
}

ProfilingObserver watched_by(ProgressBar& bar, const InterruptScope& scope) {
    return {
        .on_progress = [&bar](double fraction) { bar.update(fraction); },
        .is_cancelled = [&scope] { return scope.signal() != 0; },
    };
}

// Only warns on failure: results are worth showing even when they cannot be saved.
template <typename Save>
std::optional<std::filesystem::path> saved(const char* what,
                                           const std::optional<std::filesystem::path>& path,
                                           Save save) {
    if (!path) {
        log_warning("the ", what,
                    " is not saved: no cache folder is known (set KNAP_CACHE_DIR or HOME)");
        return std::nullopt;
    }
    try {
        save(*path);
        return path;
    } catch (const Error& error) {
        log_warning("the ", what, " is not saved: ", error.what());
        return std::nullopt;
    }
}

// Head, MLP and attention of every class of layers.
std::vector<PartLimit> part_limits(const Engine& engine, const ProfileReport& report) {
    const CostModel& costs = report.costs;
    std::vector<PartLimit> parts{
        {.name = "head", .ms = costs.head_ms(), .work = head_work(engine)}};
    for (const LayerClass& of : layer_classes(report.profile)) {
        const std::string suffix = class_suffix(report.profile, of);
        parts.push_back({.name = concat("MLP", suffix),
                         .ms = costs.mlp_ms(of.first),
                         .work = module_work(engine, of.first, Module::mlp, 0)});
        for (const int n_context : measured_contexts(report.profile)) {
            parts.push_back({.name = concat("attention", suffix),
                             .n_context = n_context,
                             .ms = costs.attention_ms(of.first, Level::full, n_context),
                             .work = module_work(engine, of.first, Module::attention, n_context)});
        }
    }
    return parts;
}

// What the machine can do, and what of it the measured passes of the whole model and their parts
// reach.
void set_limits(const Engine& engine, ProfileReport& report) {
    report.limits = measure_limits(engine);
    for (const int n_context : measured_contexts(report.profile)) {
        for (const int n_rows : measured_rows(report.profile)) {
            if (const CostSample* sample = whole_pass(report.profile, n_context, n_rows)) {
                report.passes.push_back({.n_context = n_context,
                                         .n_rows = n_rows,
                                         .ms = sample->ms,
                                         .work = whole_pass_work(engine, n_context, n_rows)});
            }
        }
    }
    report.parts = part_limits(engine, report);
}

// Returns nullopt when interrupted.
std::optional<ProfileReport> measure(Engine& engine, double seconds, const InterruptScope& scope) {
    ProgressBar bar("measure");
    auto profile = profile_engine(engine, seconds, watched_by(bar, scope));
    if (!profile) {
        return std::nullopt;
    }
    ProfileReport report{
        .config = engine.config(),
        .machine = machine_fingerprint(impl_of(engine)),
        .profile = *profile,
        .costs = CostModel(*profile),
        .kept = keep_profile(*profile, known_profile(impl_of(engine))),
    };
    set_limits(engine, report);
    warn_of_profile(report);
    if (report.kept.is_new()) {
        report.saved_to = saved("profile", profile_path(report.machine), [&](const auto& path) {
            save_profile(path, *report.kept.profile, report.machine);
        });
    }
    return report;
}

std::vector<SavedPlan> to_saved(const std::vector<PlansAtContext>& plans) {
    std::vector<SavedPlan> list;
    for (const PlansAtContext& at : plans) {
        std::ranges::copy(to_saved(at), std::back_inserter(list));
    }
    return list;
}

// Searches with the costs that later runs use; there must be some. Saves after every context, so
// that an interrupt loses only the current one. Returns false when interrupted.
bool search(Engine& engine,
            const std::vector<Token>& text,
            ProfileReport& report,
            const InterruptScope& scope) {
    ProgressBar bar("plans");
    const PlansModel model = plans_model(impl_of(engine));
    const auto keep = [&](const PlansAtContext& found) {
        report.plans.push_back(found);
        saved("list of plans", plans_path(model),
              [&](const auto& path) { save_plans(path, model, to_saved(report.plans)); });
    };
    const CostModel costs(*report.kept.profile);
    return find_plans(engine, text, costs, keep, watched_by(bar, scope));
}

void write_output(const std::filesystem::path& path, const ProfileReport& report) {
    if (is_picture(path)) {
        draw_picture(path, profile_plot_script(report.profile, report.costs));
    } else {
        write_whole_file(path, to_text(to_json(report)));
    }
}

int interrupted(const char* what_is_kept) {
    std::cerr << concat("knap: interrupted, ", what_is_kept, "\n");
    return kExitInterrupted;
}

}  // namespace

CLI::App* add_profile(CLI::App& root, Settings& settings, ProfileArgs& args) {
    CLI::App* app = root.add_subcommand(
        "profile", "Measures what passes cost on this machine, and finds plans that draft well");
    add_model_flags(*app, settings);
    add_runtime_flags(*app, settings);
    FlagGroup group(*app, "Profile");
    group.number("--seconds", args.seconds, {.min = 0, .max = 3600, .excludes_min = true},
                 "approximate measuring time in seconds");
    group.toggle("--plans", args.finds_plans,
                 "also search for plans on a text, which takes minutes");
    group.custom({"-f,--file", "FILE", "text for --plans; -: standard input", ""},
                 [&](const std::string& text) { settings.prompt_file = text; });
    group.custom({"-o,--output", "FILE",
                  "write FILE.json, or draw FILE.svg or FILE.png; repeatable", "none"},
                 [&](const std::string& text) { args.outputs.push_back(parse_output(text)); });
    add_json_flag(*app, settings);
    add_common_flags(*app, settings);
    app->footer(
        "Profile and plans are saved in $KNAP_CACHE_DIR (default: ~/.cache/knap). `knap run` and\n"
        "`knap chat` use them if they match the model and the machine (--profile). Saved times at\n"
        "contexts longer than -c are kept; times from a busy machine are not saved.");
    return app;
}

int run_profile(const Settings& settings, const ProfileArgs& args, const Environment& environment) {
    check_usage(settings, args);
    Engine engine = load_engine(settings.runtime, settings.hub, environment);
    const std::vector<Token> text = read_text(engine, settings);
    const InterruptScope scope;
    auto report = measure(engine, args.seconds, scope);
    if (!report) {
        return interrupted("nothing new is saved");
    }
    const bool has_costs = report->kept.profile.has_value();
    if (args.finds_plans && has_costs && !search(engine, text, *report, scope)) {
        return interrupted("the profile and the plans of finished contexts are saved");
    }
    TextOutput output;
    output.write(settings.wants_json ? to_text(to_json(*report)) : to_table(*report));
    for (const std::filesystem::path& path : args.outputs) {
        write_output(path, *report);
    }
    return has_costs ? kExitDone : kExitFailed;
}

}  // namespace knap

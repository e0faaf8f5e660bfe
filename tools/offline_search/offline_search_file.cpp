#include "tools/offline_search/offline_search_file.h"

#include <optional>
#include <string>
#include <utility>

#include "knap/knap.h"

#include "base/error.h"
#include "base/quoted.h"
#include "forward/plan_text.h"
#include "runtime/files/json_file.h"
#include "tools/offline_search/search_trials.h"

namespace knap {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::string_view kKind = "knap search";
constexpr int kFormat = 1;

ordered_json to_json(const SearchSettings& settings) {
    ordered_json object = {
        {"method", to_string(settings.method)},  {"n_predict", settings.n_predict},
        {"n_prompts", settings.n_prompts},       {"prompts_hash", settings.prompts_hash},
        {"machine_hash", settings.machine_hash},
    };
    if (settings.method == SearchMethod::draft_verify) {
        object["seed"] = settings.seed;
    } else {
        object["exit_layers"] = settings.exit_layers;
        object["lengths"] = settings.lengths;
    }
    return object;
}

ordered_json to_json(const PlanTrial& trial) {
    return {{"origin", to_string(trial.origin)},
            {"plan", to_string(trial.plan)},
            {"draft_max", trial.draft_max},
            {"speed", trial.measured.speed},
            {"tokens_per_second", trial.measured.tokens_per_second},
            {"acceptance_rate", trial.measured.acceptance_rate}};
}

ModulePlan plan_in(const json& object, int n_layers) {
    ModulePlan plan = parse_plan(text_in(object, "plan"), n_layers, "`plan`");
    check_runnable(plan, n_layers, "`plan`");
    return plan;
}

std::string shown(const json& value) {
    return in_quotes(value.dump(-1, ' ', false, json::error_handler_t::replace));
}

std::vector<double> point_in(const json& object, std::size_t n_variables) {
    std::vector<double> point;
    for (const json& coordinate : array_in(object, "point")) {
        if (!coordinate.is_number() || coordinate < 0 || coordinate > 1) {
            fail("expected numbers from 0 to 1 in `point`, found ", shown(coordinate));
        }
        point.push_back(coordinate.get<double>());
    }
    if (point.size() != n_variables) {
        fail("expected ", n_variables, " numbers in `point`, found ", point.size());
    }
    return point;
}

PlanTrial trial_from(const json& object, const OfflineSearch& search) {
    const int n_layers = search.model.n_layers;
    PlanTrial trial{
        .plan = plan_in(object, n_layers),
        .draft_max = integer_in(object, "draft_max", 1, kMaxDraft),
        .measured = {.speed = number_in(object, "speed", 0, kAnyNumber),
                     .tokens_per_second = number_in(object, "tokens_per_second", 0, kAnyNumber),
                     .acceptance_rate = number_in(object, "acceptance_rate", 0, 1)},
    };
    if (search.settings.method == SearchMethod::draft_verify) {
        trial.point = point_in(object, 2 * static_cast<std::size_t>(n_layers));
    }
    return trial;
}

void check_settings(const json& file, const SearchSettings& settings) {
    const json& found = object_in(file, "settings");
    const json expected = to_json(settings);
    for (const auto& [name, value] : expected.items()) {
        const json there = found.value(name, json());
        if (there != value) {
            fail("its `", name, "` differs: expected ", shown(value), ", found ", shown(there));
        }
    }
}

std::vector<PlanTrial> trials_from(const json& file, const OfflineSearch& search) {
    check_file_header(file, kKind, kFormat);
    check_model(file, search.model);
    check_settings(file, search.settings);
    std::vector<PlanTrial> trials;
    for (const json& trial : array_in(file, "trials")) {
        trials.push_back(trial_from(trial, search));
        // Not read from the file: it follows from the index, and older files do not have it.
        trials.back().origin = origin_of_trial(search.settings, trials.size() - 1);
    }
    if (static_cast<int>(trials.size()) > max_trials(search.settings)) {
        fail("expected at most ", max_trials(search.settings), " trials, found ", trials.size());
    }
    return trials;
}

// The part of a file that --plan-file uses.
struct BestPlan {
    std::string plan;
    int draft_max = 0;
};

BestPlan best_from(const json& file, const PlansModel& model) {
    check_file_header(file, kKind, kFormat);
    check_model(file, model);
    const json& best = object_in(file, "best");
    return {.plan = to_string(plan_in(best, model.n_layers)),
            .draft_max = integer_in(best, "draft_max", 1, kMaxDraft)};
}

}  // namespace

ordered_json to_json(const OfflineSearch& search) {
    ordered_json object = file_header(kKind, kFormat);
    object["version"] = version();
    add_model(object, search.model);
    object["settings"] = to_json(search.settings);
    const PlanTrial* best = best_trial(search);
    object["best"] = best != nullptr ? to_json(*best) : ordered_json(nullptr);
    object["trials"] = ordered_json::array();
    for (const PlanTrial& trial : search.trials) {
        object["trials"].push_back(to_json(trial));
        if (!trial.point.empty()) {
            object["trials"].back()["point"] = trial.point;
        }
    }
    return object;
}

void save_search(const std::filesystem::path& path, const OfflineSearch& search) {
    write_json_file(path, to_json(search));
}

void load_trials(const std::filesystem::path& path, OfflineSearch& search) {
    try {
        if (const auto file = read_json_file(path)) {
            search.trials = trials_from(*file, search);
        }
    } catch (const Error& error) {
        fail(path.string(), ": this search cannot go on from the file: ", error.what());
    }
}

void take_plan_of_file(const std::filesystem::path& path,
                       const PlansModel& model,
                       SpeculationOptions& options) {
    if (options.settings.contains("plan")) {
        fail("--plan-file: expected either this or --draft-plan, found both");
    }
    try {
        const auto file = read_json_file(path);
        if (!file) {
            fail("found no such file");
        }
        const BestPlan best = best_from(*file, model);
        options.settings["plan"] = best.plan;
        options.draft_max = options.draft_max > 0 ? options.draft_max : best.draft_max;
    } catch (const Error& error) {
        fail("--plan-file: expected a file that `knap search` wrote for this model; ",
             path.string(), ": ", error.what());
    }
}

}  // namespace knap

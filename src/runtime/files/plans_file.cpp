#include "runtime/files/plans_file.h"

#include <limits>

#include "base/cache_folder.h"
#include "base/error.h"
#include "base/log.h"
#include "forward/plan_text.h"
#include "runtime/files/json_file.h"

namespace knap {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::string_view kPlansKind = "knap plans";
constexpr int kPlansFormat = 1;

std::vector<SavedPlan> plans_from(const json& file, const PlansModel& model) {
    check_file_header(file, kPlansKind, kPlansFormat);
    check_model(file, model);
    std::vector<SavedPlan> plans;
    for (const json& plan : array_in(file, "plans")) {
        plans.push_back(plan_from(plan, model.n_layers));
    }
    return plans;
}

}  // namespace

ordered_json to_json(const SavedPlan& saved) {
    return {{"n_context", saved.n_context},
            {"plan", to_string(saved.plan)},
            {"agreed", saved.agreed},
            {"n_rows", saved.n_rows}};
}

SavedPlan plan_from(const json& object, int n_layers) {
    const int n_rows = integer_in(object, "n_rows", 1, kAnyInteger);
    SavedPlan saved{
        .n_context = integer_in(object, "n_context", 1, kAnyInteger),
        .plan = parse_plan(text_in(object, "plan"), n_layers, "`plan`"),
        .agreed = number_in(object, "agreed", 0, n_rows),
        .n_rows = n_rows,
    };
    check_runnable(saved.plan, n_layers, "`plan`");
    return saved;
}

std::optional<std::filesystem::path> plans_path(const PlansModel& model) {
    const auto folder = cache_folder();
    return folder ? std::optional(*folder / concat("plans-", model.fingerprint, ".json"))
                  : std::nullopt;
}

void save_plans(const std::filesystem::path& path,
                const PlansModel& model,
                std::span<const SavedPlan> plans) {
    ordered_json file = file_header(kPlansKind, kPlansFormat);
    add_model(file, model);
    file["plans"] = ordered_json::array();
    for (const SavedPlan& saved : plans) {
        file["plans"].push_back(to_json(saved));
    }
    write_json_file(path, file);
}

std::vector<SavedPlan> load_plans(const std::filesystem::path& path, const PlansModel& model) {
    try {
        const auto file = read_json_file(path);
        return file ? plans_from(*file, model) : std::vector<SavedPlan>();
    } catch (const Error& error) {
        log_warning_once("plans ", path.string(), " are ignored: ", error.what());
        return {};
    }
}

}  // namespace knap

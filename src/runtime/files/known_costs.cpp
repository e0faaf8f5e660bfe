#include "runtime/files/known_costs.h"

#include <filesystem>
#include <optional>
#include <system_error>

#include "base/error.h"
#include "model/layer_classes.h"
#include "runtime/engine_impl.h"
#include "runtime/files/machine_fingerprint.h"
#include "runtime/files/profile_file.h"

namespace knap {
namespace {

constexpr std::string_view kSaved = "auto";
constexpr std::string_view kNone = "none";

// Nullopt: there is no file to look for.
std::optional<std::filesystem::path> wanted_profile(const std::string& wish,
                                                    const MachineFingerprint& fingerprint) {
    if (wish == kSaved) {
        return profile_path(fingerprint);
    }
    std::error_code ignored;
    if (!std::filesystem::exists(wish, ignored)) {
        fail("`.profile`: expected auto, none or a file, found no file ", wish);
    }
    return wish;
}

}  // namespace

CostProfile blank_profile(const Engine::Impl& engine) {
    return empty_profile(engine.cost, classify_layers(*engine.weights));
}

PlansModel plans_model(const Engine::Impl& engine) {
    return {.fingerprint = model_fingerprint(engine), .n_layers = engine.model.n_layers};
}

CostProfile known_profile(const Engine::Impl& engine) {
    CostProfile blank = blank_profile(engine);
    if (engine.config.profile == kNone) {
        return blank;
    }
    const MachineFingerprint fingerprint = machine_fingerprint(engine);
    const auto path = wanted_profile(engine.config.profile, fingerprint);
    const auto loaded = path ? load_profile(*path, fingerprint, blank) : std::nullopt;
    return loaded.value_or(blank);
}

std::vector<SavedPlan> known_plans(const Engine::Impl& engine) {
    if (engine.config.profile == kNone) {
        return {};
    }
    const PlansModel model = plans_model(engine);
    const auto path = plans_path(model);
    return path ? load_plans(*path, model) : std::vector<SavedPlan>();
}

EarlierRuns saved_runs(const Engine::Impl& engine) {
    return {.profile = known_profile(engine), .plans = known_plans(engine)};
}

EarlierRuns earlier_runs(const Engine::Impl& engine) {
    EarlierRuns known = saved_runs(engine);
    if (engine.learned == nullptr) {
        return known;
    }
    known.learned = engine.learned->known();
    for (const Learned::Found& found : known.learned.plans) {
        known.plans.push_back(found.plan);
    }
    if (!can_fit(known.profile)) {
        known.profile.is_partial = true;
        for (const Learned::Cost& cost : known.learned.costs) {
            known.profile.samples.push_back(cost.sample);
        }
    }
    return known;
}

}  // namespace knap

// What `knap profile` found, as a table and as a JSON object.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "knap/types.h"

#include "runtime/machine_fingerprint.h"
#include "search/cost/cost_model.h"
#include "tools/profile/kept_profile.h"
#include "tools/profile/profiling.h"

namespace knap {

struct ProfileReport {
    RuntimeConfig config;
    MachineFingerprint machine;
    CostProfile profile;  // as it was measured
    CostModel costs;      // of that
    KeptProfile kept;
    std::optional<std::filesystem::path> saved_to{};
    std::vector<PlansAtContext> plans{};
};

// Where a search had a plan from: "window", "knapsack", "known".
std::string_view to_string(FoundPlan::Source source);

std::string to_table(const ProfileReport& report);
// The object of a saved profile (runtime/profile_file.h) with the fit and the plans beside it.
// Field names are a promise to scripts: new ones may come, none is renamed.
nlohmann::ordered_json to_json(const ProfileReport& report);

}  // namespace knap

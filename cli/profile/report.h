// The results of `knap profile`, as a table and as a JSON object.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "knap/types.h"

#include "runtime/files/machine_fingerprint.h"
#include "search/cost/cost_model.h"
#include "tools/profile/kept_profile.h"
#include "tools/profile/machine_limits.h"
#include "tools/profile/profiling.h"

namespace knap {

// A measured pass of the whole model and what it could take at best.
struct PassLimit {
    int n_context = 0;
    int n_rows = 0;
    double ms = 0;
    LeastWork work{};
};

// A part of a pass of one row, as fitted, and what it could take at best.
struct PartLimit {
    std::string name;
    std::optional<int> n_context{};  // none: the same at all of them
    double ms = 0;
    LeastWork work{};
};

struct ProfileReport {
    RuntimeConfig config;
    MachineFingerprint machine;
    CostProfile profile;  // as measured
    CostModel costs;      // fitted to `profile`
    KeptProfile kept;
    std::optional<std::filesystem::path> saved_to{};
    std::vector<PlansAtContext> plans{};
    std::optional<MachineLimits> limits{};  // none: see measure_limits()
    std::vector<PassLimit> passes{};
    std::vector<PartLimit> parts{};
};

// Where a plan came from: "window", "knapsack" or "known".
std::string_view to_string(FoundPlan::Source source);

std::string to_table(const ProfileReport& report);
// The object of a saved profile (runtime/files/profile_file.h), extended by the fit and the plans.
// Scripts rely on the field names: new fields may be added, none is renamed.
nlohmann::ordered_json to_json(const ProfileReport& report);

}  // namespace knap

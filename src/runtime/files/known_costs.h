// Loads what earlier runs measured for a model on this machine, as RuntimeConfig::profile allows.
// Nothing is measured here.
#pragma once

#include <vector>

#include "knap/knap.h"

#include "decode/learned/learned.h"
#include "runtime/files/plans_file.h"
#include "search/cost/cost_profile.h"
#include "search/saved_plans.h"

namespace knap {

// The model's profile without samples.
CostProfile blank_profile(const Engine::Impl& engine);
PlansModel plans_model(const Engine::Impl& engine);

// The saved profile, or one without samples if none matches. Throws knap::Error if the
// configuration names a profile that does not exist.
CostProfile known_profile(const Engine::Impl& engine);
std::vector<SavedPlan> known_plans(const Engine::Impl& engine);

// What a session starts with: the above, and what runs have learned without `knap profile`. Of
// costs, these count only if no profile is saved.
struct EarlierRuns {
    CostProfile profile;
    std::vector<SavedPlan> plans{};
    Learned learned{};
};
EarlierRuns earlier_runs(const Engine::Impl& engine);
// Only what `knap profile` has saved.
EarlierRuns saved_runs(const Engine::Impl& engine);

}  // namespace knap

// Loads what earlier runs measured for a model on this machine, as RuntimeConfig::profile allows.
// Nothing is measured here.
#pragma once

#include <vector>

#include "knap/knap.h"

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

}  // namespace knap

// Plans found good for a model, on disk: "plans-<model fingerprint>.json" in the cache folder, by
// the context length at which they were found (methods O10).
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "runtime/plans_model.h"
#include "search/saved_plans.h"

namespace knap {

// Nullopt when there is no cache folder.
std::optional<std::filesystem::path> plans_path(const PlansModel& model);

// Creates the folder where it is missing, and replaces a file of that name once the new one is
// whole. Throws knap::Error.
void save_plans(const std::filesystem::path& path,
                const PlansModel& model,
                std::span<const SavedPlan> plans);

// Plans that the engine can run on the model. None: there is no such file, or one that does not
// fit, of which a warning says what differs. Never throws on what a file holds.
std::vector<SavedPlan> load_plans(const std::filesystem::path& path, const PlansModel& model);

}  // namespace knap

// Saved plans of a model: "plans-<model fingerprint>.json" in the cache folder, by the context
// length at which they were found (docs/methods.md, "Warm start").
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "runtime/files/plans_model.h"
#include "search/saved_plans.h"

namespace knap {

// A plan as files have it. Reading throws as json_file.h describes.
nlohmann::ordered_json to_json(const SavedPlan& saved);
SavedPlan plan_from(const nlohmann::json& object, int n_layers);

// Returns nullopt if there is no cache folder.
std::optional<std::filesystem::path> plans_path(const PlansModel& model);

// Creates the folder if needed and replaces an existing file atomically. Throws knap::Error.
void save_plans(const std::filesystem::path& path,
                const PlansModel& model,
                std::span<const SavedPlan> plans);

// The saved plans that the engine can run on the model. Empty if there is no such file, or if it
// does not match; then a warning says what differs. Never throws because of the file's contents.
std::vector<SavedPlan> load_plans(const std::filesystem::path& path, const PlansModel& model);

}  // namespace knap

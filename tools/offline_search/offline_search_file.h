// An offline search on disk: `knap search` writes it after every trial and resumes from it, and
// --plan-file drafts with its best plan.
#pragma once

#include <filesystem>

#include <nlohmann/json.hpp>

#include "knap/types.h"

#include "tools/offline_search/offline_search.h"

namespace knap {

// Field names are stable for scripts: fields may be added, none is renamed.
nlohmann::ordered_json to_json(const OfflineSearch& search);

// Replaces an existing file atomically. Throws knap::Error.
void save_search(const std::filesystem::path& path, const OfflineSearch& search);

// Loads the trials of the file, if it exists. Throws when it is damaged or comes from another model
// or other settings than the search.
void load_trials(const std::filesystem::path& path, OfflineSearch& search);

// Sets the plan to the file's best one and, unless `options` has one, the draft length. Throws when
// the file does not exist or does not fit the model, or when `options` already has a plan.
void take_plan_of_file(const std::filesystem::path& path,
                       const PlansModel& model,
                       SpeculationOptions& options);

}  // namespace knap

// An offline search on disk: what `knap search` writes after every trial, goes on from, and
// --plan-file drafts with.
#pragma once

#include <filesystem>

#include <nlohmann/json.hpp>

#include "knap/types.h"

#include "tools/offline_search/offline_search.h"

namespace knap {

// Field names are a promise to scripts: new ones may come, none is renamed.
nlohmann::ordered_json to_json(const OfflineSearch& search);

// Replaces a file of that name once the new one is whole. Throws knap::Error.
void save_search(const std::filesystem::path& path, const OfflineSearch& search);

// Takes over the trials of the file, where there is one. Throws where it is damaged, or of another
// model or other settings than the search.
void load_trials(const std::filesystem::path& path, OfflineSearch& search);

// Sets the plan to the best one of the file and, unless `options` has one, the longest draft.
// Throws when the file does not exist or does not fit the model, or when `options` has a plan.
void take_plan_of_file(const std::filesystem::path& path,
                       const PlansModel& model,
                       SpeculationOptions& options);

}  // namespace knap

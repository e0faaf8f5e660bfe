// An offline search on disk: what `knap search` writes after every trial, goes on from, and
// --plan-file drafts with.
#pragma once

#include <filesystem>

#include <nlohmann/json.hpp>

#include "knap/types.h"

#include "runtime/offline_search.h"

namespace knap {

// Field names are a promise to scripts: new ones may come, none is renamed.
nlohmann::ordered_json to_json(const OfflineSearch& search);

// Replaces a file of that name once the new one is whole. Throws knap::Error.
void save_search(const std::filesystem::path& path, const OfflineSearch& search);

// Takes over the trials of the file, where there is one. Throws where it is damaged, or of another
// model or other settings than the search.
void load_trials(const std::filesystem::path& path, OfflineSearch& search);

// The options with the best plan of their plan_file and, where they have none, its draft length.
// Throws where there is no such file, or one that does not fit the model or the options.
SpeculationOptions with_plan_of_file(const SpeculationOptions& options, const PlansModel& model);

}  // namespace knap

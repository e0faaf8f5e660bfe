// An offline search as text for a terminal; runtime/offline_search_file.h has its JSON object.
#pragma once

#include <filesystem>
#include <string>

#include "knap/types.h"

#include "tools/offline_search/offline_search.h"

namespace knap {

// The fastest trials first. `file`: where the search is kept; empty: nowhere.
std::string to_table(const OfflineSearch& search,
                     const RuntimeConfig& config,
                     const std::filesystem::path& file);

}  // namespace knap

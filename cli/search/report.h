// An offline search as text for a terminal. For its JSON object see
// tools/offline_search/offline_search_file.h.
#pragma once

#include <filesystem>
#include <string>

#include "knap/types.h"

#include "tools/offline_search/offline_search.h"

namespace knap {

// Lists the fastest trials first. `file` is where the search is saved; empty: nowhere.
std::string to_table(const OfflineSearch& search,
                     const RuntimeConfig& config,
                     const std::filesystem::path& file);

}  // namespace knap

// The user's cache folders. Neither need exist: code that writes there creates the folder first.
#pragma once

#include <filesystem>
#include <optional>

namespace knap {

// Downloads, such as the default model: $KNAP_CACHE, else $XDG_CACHE_HOME/knap, else ~/.cache/knap.
// Returns nullopt when none of these variables is set.
std::optional<std::filesystem::path> shared_cache_folder();

// What knap learns about models and the machine: $KNAP_CACHE_DIR, else the shared cache folder.
std::optional<std::filesystem::path> cache_folder();

}  // namespace knap

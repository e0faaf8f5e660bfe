// The user's folders for what outlives a run. Neither needs to exist: whoever writes creates it.
#pragma once

#include <filesystem>
#include <optional>

namespace knap {

// Where fetched things are, the default model among them: $KNAP_CACHE, else $XDG_CACHE_HOME/knap,
// else ~/.cache/knap. Nullopt when none of the variables is set.
std::optional<std::filesystem::path> shared_cache_folder();

// Where knap keeps what it finds out about models and the machine: $KNAP_CACHE_DIR, else the folder
// above.
std::optional<std::filesystem::path> cache_folder();

}  // namespace knap

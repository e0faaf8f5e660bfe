#include "base/cache_folder.h"

#include <cstdlib>

namespace knap {
namespace {

using Folder = std::optional<std::filesystem::path>;

// An empty variable counts as unset.
Folder folder_in(const char* variable, const char* below) {
    const char* value = std::getenv(variable);
    const bool is_set = value != nullptr && *value != '\0';
    return is_set ? Folder(std::filesystem::path(value) / below) : std::nullopt;
}

Folder first_of(std::initializer_list<Folder> folders) {
    for (const Folder& folder : folders) {
        if (folder) {
            return folder;
        }
    }
    return std::nullopt;
}

}  // namespace

std::optional<std::filesystem::path> shared_cache_folder() {
    return first_of({folder_in("KNAP_CACHE", ""), folder_in("XDG_CACHE_HOME", "knap"),
                     folder_in("HOME", ".cache/knap")});
}

std::optional<std::filesystem::path> cache_folder() {
    return first_of({folder_in("KNAP_CACHE_DIR", ""), shared_cache_folder()});
}

}  // namespace knap

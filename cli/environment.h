// What the command line takes from the process's environment. Read once, in main, and passed down.
#pragma once

#include <filesystem>

namespace knap {

struct Environment {
    // shared_cache_folder() of base/cache_folder.h; empty when there is none.
    std::filesystem::path cache_folder;
    bool forbids_color = false;  // $NO_COLOR is set and not empty
};

Environment read_environment();

// The model of a command without -m: the one that `deps/setup model` fetches into the cache folder.
// Throws, saying how to get it, when it is not there.
std::filesystem::path find_default_model(const Environment& environment);

}  // namespace knap

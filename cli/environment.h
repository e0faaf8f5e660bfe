// What the command line takes from the process's environment. Read once, in main, and passed down.
#pragma once

#include <filesystem>

namespace knap {

struct Environment {
    // $KNAP_CACHE, else $XDG_CACHE_HOME/knap, else ~/.cache/knap; empty when none of them is set.
    std::filesystem::path cache_folder;
    bool forbids_color = false;  // $NO_COLOR is set and not empty
};

Environment read_environment();

// The model of a command without -m: the one that `deps/setup model` fetches into the cache folder.
// Throws, saying how to get it, when it is not there.
std::filesystem::path find_default_model(const Environment& environment);

}  // namespace knap

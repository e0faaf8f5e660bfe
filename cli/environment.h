// The environment variables that the command line uses. Read once, in main, and passed down.
#pragma once

#include <filesystem>
#include <string>

namespace knap {

struct Environment {
    // shared_cache_folder() of base/cache_folder.h; empty when there is none.
    std::filesystem::path cache_folder;
    bool forbids_color = false;  // $NO_COLOR is set and not empty
    // Of `knap serve`; empty when not set.
    std::string host{};     // $KNAP_HOST
    std::string port{};     // $KNAP_PORT
    std::string api_key{};  // $KNAP_API_KEY
};

Environment read_environment();

// The model of a command without -m: the one that `deps/setup model` fetches into the cache folder.
// Throws when it is missing; the message tells how to fetch it.
std::filesystem::path find_default_model(const Environment& environment);

}  // namespace knap

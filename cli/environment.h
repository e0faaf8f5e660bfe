// The environment variables that the command line uses. Read once, in main, and passed down.
#pragma once

#include <filesystem>
#include <string>

namespace knap {

// Of a hub of models; empty when not set. The names are those of llama.cpp and of the hub's own
// programs.
struct HubEnvironment {
    std::string endpoint{};      // $MODEL_ENDPOINT, else $HF_ENDPOINT
    std::string token{};         // $HF_TOKEN
    std::string offline{};       // $HF_HUB_OFFLINE
    std::string timeout{};       // $HF_HUB_DOWNLOAD_TIMEOUT, seconds
    std::string certificates{};  // $SSL_CERT_FILE
};

struct Environment {
    // shared_cache_folder() of base/cache_folder.h; empty when there is none.
    std::filesystem::path cache_folder;
    bool forbids_color = false;  // $NO_COLOR is set and not empty
    // Of `knap serve`; empty when not set.
    std::string host{};     // $KNAP_HOST
    std::string port{};     // $KNAP_PORT
    std::string api_key{};  // $KNAP_API_KEY
    HubEnvironment hub{};
};

Environment read_environment();

// The model of a command without -m: the one that `deps/setup model` fetches into the cache folder.
// Throws when it is missing; the message tells how to fetch it.
std::filesystem::path find_default_model(const Environment& environment);

}  // namespace knap

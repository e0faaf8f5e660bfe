// Models from a hub with Hugging Face's interface, such as huggingface.co: fetched once, checked,
// and kept in the cache folder. The requests are those of llama.cpp's own downloader. That one is
// not used, because it is built without TLS here and compares neither sizes nor checksums; libcurl
// has TLS, proxies and the rules for redirects.
#pragma once

#include <filesystem>
#include <optional>

#include "hub/connection.h"
#include "hub/reference.h"

namespace knap {

struct HubRequest {
    HubReference reference;
    HubAccess access;
    bool is_offline = false;             // use only what is in the cache folder
    std::filesystem::path cache_folder;  // files go below its folder "hub"
};

// The path of the model: of its first part, where it is split. A model in the cache folder is used
// if the hub still has the same, or does not answer. Several processes may fetch at once. Returns
// nullopt when cancelled. Throws knap::Error.
std::optional<std::filesystem::path> fetch_model(const HubRequest& request,
                                                 const HubObserver& observer);

}  // namespace knap

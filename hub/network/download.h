// One file on its way from an address to the disk: continued where an earlier run stopped, never
// longer than announced, and published only when its checksum is right.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "hub/connection.h"
#include "hub/network/attempts.h"
#include "hub/network/web_client.h"

namespace knap {

struct Download {
    WebClient& web;
    WebRequest request;
    const HubFile& file;
    std::filesystem::path path;
    std::filesystem::path partial_path;
    int n_attempts;  // without a new byte
    // How many bytes are there; called several times a second, may throw to give up.
    std::function<void(std::uint64_t n_done, const std::string& note)> on_progress;
    std::function<void(const WebResponse&)> fail_response;  // throws what the user is told
};

// Does nothing when `path` already has the right contents. Throws knap::Error.
void run_download(const Download& download);

}  // namespace knap

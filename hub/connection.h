// The network as the rest of this folder sees it. hub/network implements it; a build without it
// (KNAP_HUB=OFF) has hub/no_network.cpp in its place.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "hub/listing.h"

namespace knap {

struct HubAccess {
    std::string endpoint;        // "https://host" without a slash at its end
    std::string token{};         // empty: none
    std::string certificates{};  // file of the certificates to trust; empty: the system's
    int stall_s = 30;            // without a byte for so long, a connection counts as cut
};

// What the user sees while it takes long. Both functions may be empty.
struct HubObserver {
    // `n_done` of the `n_bytes` of the file at hand; `note` says what is done instead of receiving
    // bytes, if so.
    std::function<void(std::uint64_t n_done, std::uint64_t n_bytes, const std::string& note)>
        on_progress{};
    std::function<bool()> is_cancelled{};  // asked several times a second
};

// Thrown when the observer cancels. What was fetched stays.
struct HubCancelled {};

class HubConnection {
  public:
    virtual ~HubConnection() = default;
    // Both throw knap::Error when it cannot be done, after trying `n_attempts` times where that may
    // help.
    virtual HubListing list(const std::string& repository, int n_attempts) = 0;
    // The file appears at `path` when it is complete and its checksum right. Until then it is at
    // `partial_path`, from where the next call goes on.
    virtual void download(const std::string& repository,
                          const std::string& commit,
                          const HubFile& file,
                          const std::filesystem::path& path,
                          const std::filesystem::path& partial_path) = 0;
};

// Throws knap::Error when the endpoint or the token cannot be what they should be.
std::unique_ptr<HubConnection> connect_to_hub(const HubAccess& access, const HubObserver& observer);

}  // namespace knap

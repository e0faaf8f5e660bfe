#include "serve/http/request_id.h"

#include <algorithm>
#include <cstdint>
#include <iomanip>
#include <random>
#include <sstream>

namespace knap {

std::string request_id(std::string_view from_client) {
    constexpr std::size_t kMaxBytes = 128;
    const auto is_printable = [](char c) { return c >= ' ' && c <= '~'; };
    if (!from_client.empty() && from_client.size() <= kMaxBytes &&
        std::ranges::all_of(from_client, is_printable)) {
        return std::string(from_client);
    }
    thread_local std::mt19937_64 random{[] {
        std::random_device device;
        return (std::uint64_t{device()} << 32) | device();
    }()};
    std::ostringstream id;
    id << "req-" << std::hex << std::setfill('0') << std::setw(16) << random();
    return id.str();
}

}  // namespace knap

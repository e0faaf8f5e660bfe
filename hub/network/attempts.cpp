#include "hub/network/attempts.h"

#include <charconv>
#include <optional>
#include <thread>

#include "base/text.h"

namespace knap {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstPause{500};
constexpr milliseconds kLongestPause{120'000};
constexpr milliseconds kStep{100};

// In seconds; a date, which the header may also have, counts as none.
std::optional<milliseconds> retry_after(const WebResponse& response) {
    const std::string text = response.header("retry-after");
    int seconds = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
    const bool is_number = error == std::errc() && rest == text.data() + text.size();
    return is_number && seconds >= 0 ? std::optional(milliseconds(1000LL * seconds)) : std::nullopt;
}

}  // namespace

bool Attempts::may_retry(const WebResponse& response) {
    if (!response.may_recover || ++n_failed_ >= n_attempts_) {
        return false;
    }
    const milliseconds own = kFirstPause * (1 << (n_failed_ - 1));
    const milliseconds pause = std::max(own, retry_after(response).value_or(own));
    if (pause > kLongestPause) {
        return false;
    }
    wait(pause, response);
    return true;
}

void Attempts::wait(milliseconds pause, const WebResponse& response) const {
    const std::string why =
        response.failure.empty() ? concat("status ", response.status) : response.failure;
    const auto end = std::chrono::steady_clock::now() + pause;
    while (std::chrono::steady_clock::now() < end) {
        on_wait_(concat("trying again: ", why));
        std::this_thread::sleep_for(kStep);
    }
}

}  // namespace knap

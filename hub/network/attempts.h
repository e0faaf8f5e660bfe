// Tries a request again when that may help, after pauses that become longer.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "hub/network/web_client.h"

namespace knap {

class Attempts {
  public:
    // `on_wait` is called several times a second during a pause, with a note for the user; it may
    // throw to give up.
    Attempts(int n_attempts, std::function<void(const std::string&)> on_wait)
        : n_attempts_(n_attempts), on_wait_(std::move(on_wait)) {}

    // After a response that is not whole: waits and returns true when there is another attempt.
    bool may_retry(const WebResponse& response);
    // The last attempt brought something new: those before it no longer count.
    void made_progress() { n_failed_ = 0; }

  private:
    void wait(std::chrono::milliseconds pause, const WebResponse& response) const;

    int n_attempts_;
    std::function<void(const std::string&)> on_wait_;
    int n_failed_ = 0;
};

}  // namespace knap

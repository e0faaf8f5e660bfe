// Bytes that wait to be sent on a socket.
#pragma once

#include <cstddef>
#include <deque>
#include <string>

namespace knap {

class Outbox {
  public:
    struct Progress {
        bool has_failed = false;  // the connection is broken
        std::size_t n_sent = 0;
        std::size_t n_released = 0;  // sum of `n_counted` of what has been sent as a whole
    };

    void add(std::string bytes, std::size_t n_counted = 0);
    bool is_empty() const { return parts_.empty(); }

    // Sends what the socket takes at once. Does not block, and raises no SIGPIPE.
    Progress send(int descriptor);

  private:
    struct Part {
        std::string bytes;
        std::size_t n_counted;
    };
    std::deque<Part> parts_{};
    std::size_t n_sent_of_first_ = 0;
};

}  // namespace knap

// Where a worker listens, and whether somebody does.
#pragma once

#include <string>

namespace knap {

struct WorkerAddress {
    std::string host;
    int port = 0;

    std::string text() const;  // "host:port"
};

// Reads "host:port"; throws knap::Error when it is none.
WorkerAddress parse_worker_address(const std::string& text);

// Throws knap::Error when nobody accepts connections there within some seconds.
void check_reachable(const WorkerAddress& address);
// Throws knap::Error when nothing can listen there: the port is taken, or the host is not this one.
// The host is given as numbers, "127.0.0.1".
void check_can_listen(const WorkerAddress& address);

// Lets connections to this address end when the machine at their other end has vanished, instead of
// waiting for it. For those that exist.
void limit_silence(const WorkerAddress& address);

}  // namespace knap

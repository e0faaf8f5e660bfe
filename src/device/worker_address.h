// The address of a worker, and checks whether it can be reached.
#pragma once

#include <string>

namespace knap {

struct WorkerAddress {
    std::string host;
    int port = 0;

    std::string text() const;  // "host:port"
};

// Parses "host:port"; throws knap::Error if it is malformed.
WorkerAddress parse_worker_address(const std::string& text);

// Throws knap::Error if nothing accepts connections there within some seconds.
void check_reachable(const WorkerAddress& address);
// Throws knap::Error if it is not possible to listen there: the port is taken, or the host is not
// this one. The host must be numeric, such as "127.0.0.1".
void check_can_listen(const WorkerAddress& address);

// Makes existing connections to this address fail when the machine at the other end has vanished,
// instead of waiting for it.
void limit_silence(const WorkerAddress& address);

}  // namespace knap

// Devices of other machines, by ggml's RPC: no authentication, no encryption, for loopback and
// private networks alone.
#pragma once

#include <string>
#include <vector>

#include "ggml-backend.h"

namespace knap {

// The devices of the worker at "host:port".
std::vector<ggml_backend_dev_t> connect_worker(const std::string& endpoint);

// Lends `devices` to one client after the other, at "host:port". Returns where that cannot be done.
void serve_clients(const std::string& endpoint,
                   int n_threads,
                   std::vector<ggml_backend_dev_t> devices);

}  // namespace knap

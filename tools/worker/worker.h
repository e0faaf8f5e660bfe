// `knap worker`: this machine's devices for a program on another one.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace knap {

struct WorkerConfig {
    std::string host = "127.0.0.1";
    int port = 50052;
    int n_threads = 0;                   // 0: the physical cores that this process may use
    std::vector<std::string> devices{};  // names of devices(); empty: the first
};

// Serves until the process ends; throws knap::Error where it cannot. `on_listening` gets where, and
// with what, in words; it is called on another thread.
[[noreturn]] void run_worker(const WorkerConfig& config,
                             const std::function<void(const std::string& what)>& on_listening);

}  // namespace knap

// `knap worker`: serves this machine's devices to a program on another machine.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace knap {

struct WorkerConfig {
    std::string host = "127.0.0.1";
    int port = 50052;
    int n_threads = 0;                   // 0: the physical cores that this process may use
    std::vector<std::string> devices{};  // names from devices(); empty: the first
};

// Serves until the process ends. Throws knap::Error when it cannot. Calls `on_listening` on another
// thread with a description of the address and the devices.
[[noreturn]] void run_worker(const WorkerConfig& config,
                             const std::function<void(const std::string& what)>& on_listening);

}  // namespace knap

#include "device/remote_workers.h"

#include "ggml-rpc.h"

#include "base/error.h"
#include "device/device_list.h"

namespace knap {
namespace {

// Looked up by name: a ggml built with loadable backends does not link them.
template <typename Function>
Function* find_rpc_function(const char* name) {
    cpu_device();  // all backends are there
    ggml_backend_reg_t registry = ggml_backend_reg_by_name("RPC");
    void* function =
        registry != nullptr ? ggml_backend_reg_get_proc_address(registry, name) : nullptr;
    if (function == nullptr) {
        fail("ggml: expected a build with RPC (GGML_RPC=ON), found one without");
    }
    return reinterpret_cast<Function*>(function);
}

}  // namespace

std::vector<ggml_backend_dev_t> connect_worker(const std::string& endpoint) {
    auto* add =
        find_rpc_function<decltype(ggml_backend_rpc_add_server)>("ggml_backend_rpc_add_server");
    ggml_backend_reg_t worker = add(endpoint.c_str());
    if (worker == nullptr) {
        fail("worker ", endpoint, ": expected at least one device, found none");
    }
    std::vector<ggml_backend_dev_t> devices;
    for (std::size_t i = 0; i < ggml_backend_reg_dev_count(worker); ++i) {
        devices.push_back(ggml_backend_reg_dev_get(worker, i));
    }
    return devices;
}

void serve_clients(const std::string& endpoint,
                   int n_threads,
                   std::vector<ggml_backend_dev_t> devices) {
    auto* serve =
        find_rpc_function<decltype(ggml_backend_rpc_start_server)>("ggml_backend_rpc_start_server");
    serve(endpoint.c_str(), nullptr, static_cast<std::size_t>(n_threads), devices.size(),
          devices.data());
}

}  // namespace knap

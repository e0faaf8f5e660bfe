#include "device/remote_workers.h"

#include <chrono>
#include <thread>
#include <utility>

#include "ggml-rpc.h"

#include "base/error.h"
#include "device/lost_worker.h"

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

// Throws when nobody listens after some seconds.
void wait_until_reachable(const WorkerAddress& address) {
    constexpr int kTries = 100;
    constexpr auto kPause = std::chrono::milliseconds(20);
    for (int i = 1; i < kTries; ++i) {
        try {
            return check_reachable(address);
        } catch (const Error&) {
            std::this_thread::sleep_for(kPause);
        }
    }
    check_reachable(address);
}

}  // namespace

WorkerConnection::WorkerConnection(const WorkerAddress& address, int patience_s) {
    auto* add =
        find_rpc_function<decltype(ggml_backend_rpc_add_server)>("ggml_backend_rpc_add_server");
    check_reachable(address);
    const AnswerDeadline deadline(address.text());
    ggml_backend_reg_t worker = add(address.text().c_str());
    if (worker == nullptr) {
        fail("worker ", address.text(), ": expected at least one device, found none");
    }
    held_.reset(ggml_backend_dev_init(ggml_backend_reg_dev_get(worker, 0), nullptr));
    limit_silence(address);
    std::vector<ggml_backend_dev_t> lent;
    for (std::size_t i = 0; i < ggml_backend_reg_dev_count(worker); ++i) {
        lent.push_back(ggml_backend_reg_dev_get(worker, i));
        devices_.push_back(describe(lent.back()));
    }
    watch_worker(address.text(), std::move(lent), patience_s);
}

void serve_clients(const WorkerAddress& address,
                   int n_threads,
                   std::vector<ggml_backend_dev_t> devices,
                   const std::function<void()>& on_listening) {
    auto* serve =
        find_rpc_function<decltype(ggml_backend_rpc_start_server)>("ggml_backend_rpc_start_server");
    check_can_listen(address);
    // ggml does not say when it listens; a connection that is closed at once does no harm.
    std::thread announcer([&] {
        try {
            wait_until_reachable(address);
        } catch (const Error&) {
            return;
        }
        on_listening();
    });
    serve(address.text().c_str(), nullptr, static_cast<std::size_t>(n_threads), devices.size(),
          devices.data());
    announcer.join();
    fail("worker ", address.text(), ": ggml's server ended");
}

}  // namespace knap

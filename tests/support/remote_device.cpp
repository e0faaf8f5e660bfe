#include "support/remote_device.h"

#include <future>
#include <thread>

#include "device/remote_workers.h"
#include "support/free_port.h"

namespace knap::test {
namespace {

WorkerAddress start_worker() {
    const WorkerAddress address{"127.0.0.1", free_port()};
    auto listens = std::make_shared<std::promise<void>>();
    std::thread([listens, address] {
        serve_clients(address, 1, {cpu_device()}, [listens] { listens->set_value(); });
    }).detach();
    listens->get_future().wait();
    return address;
}

}  // namespace

const std::string& remote_worker() {
    static const std::string text = start_worker().text();
    return text;
}

ggml_backend_dev_t remote_device() {
    static const auto* worker = new WorkerConnection(start_worker());
    return worker->devices().front().device;
}

}  // namespace knap::test

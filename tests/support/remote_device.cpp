#include "support/remote_device.h"

#include <future>
#include <thread>

#include "device/remote_workers.h"
#include "support/free_port.h"

namespace knap::test {

ggml_backend_dev_t remote_device() {
    static const auto* worker = [] {
        const WorkerAddress address{"127.0.0.1", free_port()};
        auto listens = std::make_shared<std::promise<void>>();
        std::thread([listens, address] {
            serve_clients(address, 1, {cpu_device()}, [listens] { listens->set_value(); });
        }).detach();
        listens->get_future().wait();
        return new WorkerConnection(address);
    }();
    return worker->devices().front().device;
}

}  // namespace knap::test

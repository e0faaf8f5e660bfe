#include "device/backend.h"

#include <array>
#include <cstring>
#include <mutex>
#include <utility>

#include "ggml-backend.h"
#include "ggml-cpu.h"

#include "base/error.h"
#include "device/cpu_topology.h"
#include "device/device_list.h"
#include "device/ggml_log.h"
#include "device/thread_team.h"

namespace knap {
namespace {

// Functions of the CPU backend are looked up by name: a ggml built with loadable backends does not
// link them.
template <typename Function>
Function* find_function(ggml_backend_reg_t registry, const char* name) {
    auto* function = reinterpret_cast<Function*>(ggml_backend_reg_get_proc_address(registry, name));
    if (function == nullptr) {
        fail("ggml's CPU backend: expected a function ", name,
             ", found none (another version of ggml?)");
    }
    return function;
}

// The lowest level at which ggml's threads spin between graphs: a few milliseconds. That bridges
// the gap between two tokens. After that they let the core go, to others and to our own threads.
constexpr std::uint32_t kPollLevel = 1;

}  // namespace

struct Backend::Impl {
    void start_pool(int n_wanted);

    ggml_backend_dev_t device = nullptr;
    ggml_backend_reg_t registry = nullptr;
    ggml_threadpool_t pool = nullptr;  // of the CPU
    decltype(ggml_threadpool_free)* free_pool = nullptr;
    ggml_backend_ptr backend;      // freed before the pool: see ~Backend
    WorkerPulse* pulse = nullptr;  // of the worker that lends the device
    int n_threads = 0;
    bool is_host = false;
    std::function<bool()> should_abort;
    std::once_flag team_once;
    std::unique_ptr<ThreadTeam> team;
    // Numbers graphs, on other devices than the CPU.
    ggml_backend_ptr host_backend;
    ggml_backend_sched_ptr numbering;
    int max_nodes = 0;  // of a graph that it takes
};

void Backend::Impl::start_pool(int n_wanted) {
    n_threads = n_wanted > 0 ? n_wanted : default_thread_count();
    if (n_threads > GGML_MAX_N_THREADS) {
        fail("threads: expected at most ", GGML_MAX_N_THREADS, ", found ", n_threads);
    }
    // ggml ends the process where a thread cannot be started. Those of the trial end first, because
    // there may be no room for both.
    static_cast<void>(ThreadTeam(n_threads));
    free_pool = find_function<decltype(ggml_threadpool_free)>(registry, "ggml_threadpool_free");
    ggml_threadpool_params parameters = ggml_threadpool_params_default(n_threads);
    parameters.poll = kPollLevel;
    pool =
        find_function<decltype(ggml_threadpool_new)>(registry, "ggml_threadpool_new")(&parameters);
    if (pool == nullptr) {
        fail("ggml: could not start ", n_threads, " threads");
    }
    find_function<decltype(ggml_backend_cpu_set_n_threads)>(registry, "ggml_backend_set_n_threads")(
        backend.get(), n_threads);
    find_function<decltype(ggml_backend_cpu_set_threadpool)>(
        registry, "ggml_backend_cpu_set_threadpool")(backend.get(), pool);
}

Backend::Backend(int n_threads) : Backend(cpu_device(), n_threads) {}

Backend::Backend(ggml_backend_dev_t device, int n_threads) : impl_(std::make_unique<Impl>()) {
    Impl& self = *impl_;
    self.device = device;
    self.registry = ggml_backend_dev_backend_reg(device);
    self.pulse = pulse_of(device);
    const WorkerWait wait = waiting();
    self.backend.reset(ggml_backend_dev_init(device, nullptr));
    if (self.backend == nullptr) {
        fail("ggml: could not start the device ", ggml_backend_dev_name(device));
    }
    self.is_host = ggml_backend_dev_type(device) == GGML_BACKEND_DEVICE_TYPE_CPU;
    if (self.is_host) {
        self.start_pool(n_threads);
    }
}

Backend::~Backend() {
    impl_->backend.reset();
    if (impl_->pool != nullptr) {
        impl_->free_pool(impl_->pool);
    }
}

ggml_backend_dev_t Backend::device() const {
    return impl_->device;
}

ggml_backend_buffer_type_t Backend::buffer_type() const {
    const WorkerWait wait = waiting();
    return ggml_backend_get_default_buffer_type(impl_->backend.get());
}

ggml_backend_buffer_type_t Backend::staging_type() const {
    ggml_backend_buffer_type_t pinned = ggml_backend_dev_host_buffer_type(impl_->device);
    return pinned != nullptr ? pinned : ggml_backend_cpu_buffer_type();
}

std::vector<ggml_backend_buffer_type_t> Backend::extra_buffer_types() const {
    auto* list = reinterpret_cast<ggml_backend_dev_get_extra_bufts_t>(
        ggml_backend_reg_get_proc_address(impl_->registry, "ggml_backend_dev_get_extra_bufts"));
    std::vector<ggml_backend_buffer_type_t> types;
    if (list != nullptr) {
        for (auto* type = list(impl_->device); type != nullptr && *type != nullptr; ++type) {
            types.push_back(*type);
        }
    }
    return types;
}

bool Backend::supports(const ggml_tensor* op) const {
    return ggml_backend_dev_supports_op(impl_->device, op);
}

bool Backend::is_host() const {
    return impl_->is_host;
}

int Backend::n_threads() const {
    return impl_->n_threads;
}

ThreadTeam& Backend::team() const {
    KNAP_ASSERT(impl_->is_host, "only the CPU has threads");
    std::call_once(impl_->team_once,
                   [this] { impl_->team = std::make_unique<ThreadTeam>(impl_->n_threads); });
    return *impl_->team;
}

// Devices know an unchanged graph by its number, and compare every node of one without. A scheduler
// numbers the graphs that it splits; one whose tensors all lie on the device is left whole.
void Backend::settle(ggml_cgraph* graph) {
    Impl& self = *impl_;
    if (self.is_host) {
        return;
    }
    const int n_nodes = ggml_graph_size(graph);
    if (self.numbering == nullptr || n_nodes > self.max_nodes) {
        self.host_backend.reset(ggml_backend_dev_init(cpu_device(), nullptr));
        std::array<ggml_backend_t, 2> backends{self.backend.get(), self.host_backend.get()};
        self.numbering.reset(ggml_backend_sched_new(backends.data(), nullptr, backends.size(),
                                                    static_cast<std::size_t>(n_nodes),
                                                    /*parallel=*/false, /*op_offload=*/false));
        self.max_nodes = n_nodes;
    }
    ggml_backend_sched_reset(self.numbering.get());
    ggml_backend_sched_split_graph(self.numbering.get(), graph);
    KNAP_ASSERT(ggml_backend_sched_get_n_splits(self.numbering.get()) == 1,
                "all of a graph lies on its device");
}

bool Backend::compute(ggml_cgraph* graph) {
    const WorkerWait wait = waiting();
    const ggml_status status = ggml_backend_graph_compute_async(impl_->backend.get(), graph);
    if (status == GGML_STATUS_ABORTED) {
        return false;
    }
    if (status != GGML_STATUS_SUCCESS) {
        fail("ggml: the computation failed: ", ggml_status_to_string(status));
    }
    return true;
}

void Backend::set_abort(std::function<bool()> should_abort) {
    impl_->should_abort = std::move(should_abort);
    if (!impl_->is_host) {
        return;
    }
    auto* set = find_function<decltype(ggml_backend_cpu_set_abort_callback)>(
        impl_->registry, "ggml_backend_set_abort_callback");
    if (impl_->should_abort) {
        set(
            impl_->backend.get(),
            [](void* self) { return static_cast<Impl*>(self)->should_abort(); }, impl_.get());
    } else {
        set(impl_->backend.get(), nullptr, nullptr);
    }
}

bool Backend::is_aborted() const {
    return impl_->should_abort && impl_->should_abort();
}

void Backend::write(ggml_tensor* tensor,
                    const void* from,
                    std::size_t offset,
                    std::size_t n_bytes) {
    if (impl_->is_host) {
        std::memcpy(static_cast<std::byte*>(tensor->data) + offset, from, n_bytes);
    } else {
        const WorkerWait wait = waiting();
        ggml_backend_tensor_set_async(impl_->backend.get(), tensor, from, offset, n_bytes);
    }
}

void Backend::read(const ggml_tensor* tensor, void* to, std::size_t offset, std::size_t n_bytes) {
    if (impl_->is_host) {
        std::memcpy(to, static_cast<const std::byte*>(tensor->data) + offset, n_bytes);
    } else {
        const WorkerWait wait = waiting();
        ggml_backend_tensor_get_async(impl_->backend.get(), tensor, to, offset, n_bytes);
    }
}

void Backend::wait() {
    if (!impl_->is_host) {
        const WorkerWait wait = waiting();
        ggml_backend_synchronize(impl_->backend.get());
    }
}

WorkerWait Backend::waiting() const {
    return WorkerWait(impl_->pulse);
}

void* Backend::thread_pool() const {
    return impl_->pool;
}

}  // namespace knap

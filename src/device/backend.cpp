#include "device/backend.h"

#include <algorithm>
#include <utility>

#include "ggml-backend.h"
#include "ggml-cpu.h"

#include "base/error.h"
#include "device/cpu_topology.h"
#include "device/ggml_log.h"

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

ggml_backend_dev_t find_cpu_device() {
    install_ggml_log();
    if (ggml_backend_dev_count() == 0) {
        ggml_backend_load_all();
    }
    ggml_backend_dev_t device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
    if (device == nullptr) {
        fail("ggml: expected a CPU backend, found none");
    }
    return device;
}

// Wakes within microseconds while decoding, yet lets the core go when the engine is idle.
constexpr std::uint32_t kPollLevel = 50;

}  // namespace

struct Backend::Impl {
    ggml_backend_dev_t device = nullptr;
    ggml_backend_reg_t registry = nullptr;
    ggml_threadpool_t pool = nullptr;
    decltype(ggml_threadpool_free)* free_pool = nullptr;
    ggml_backend_ptr backend;  // freed before the pool: see ~Backend
    int n_threads = 1;
    std::function<bool()> should_abort;
};

Backend::Backend(int n_threads) : impl_(std::make_unique<Impl>()) {
    Impl& self = *impl_;
    self.device = find_cpu_device();
    self.registry = ggml_backend_dev_backend_reg(self.device);
    self.n_threads = n_threads > 0 ? n_threads : default_thread_count();
    if (self.n_threads > GGML_MAX_N_THREADS) {
        fail("threads: expected at most ", GGML_MAX_N_THREADS, ", found ", self.n_threads);
    }
    self.free_pool =
        find_function<decltype(ggml_threadpool_free)>(self.registry, "ggml_threadpool_free");

    ggml_threadpool_params parameters = ggml_threadpool_params_default(self.n_threads);
    parameters.poll = kPollLevel;
    self.pool = find_function<decltype(ggml_threadpool_new)>(self.registry,
                                                             "ggml_threadpool_new")(&parameters);
    self.backend.reset(ggml_backend_dev_init(self.device, nullptr));
    if (self.pool == nullptr || self.backend == nullptr) {
        fail("ggml: could not start the CPU backend with ", self.n_threads, " threads");
    }
    find_function<decltype(ggml_backend_cpu_set_n_threads)>(
        self.registry, "ggml_backend_set_n_threads")(self.backend.get(), self.n_threads);
    find_function<decltype(ggml_backend_cpu_set_threadpool)>(
        self.registry, "ggml_backend_cpu_set_threadpool")(self.backend.get(), self.pool);
}

Backend::~Backend() {
    impl_->backend.reset();
    if (impl_->pool != nullptr) {
        impl_->free_pool(impl_->pool);
    }
}

ggml_backend_t Backend::handle() const {
    return impl_->backend.get();
}

ggml_backend_dev_t Backend::device() const {
    return impl_->device;
}

ggml_backend_buffer_type_t Backend::buffer_type() const {
    return ggml_backend_get_default_buffer_type(impl_->backend.get());
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

int Backend::n_threads() const {
    return impl_->n_threads;
}

bool Backend::compute(ggml_cgraph* graph) {
    const ggml_status status = ggml_backend_graph_compute(impl_->backend.get(), graph);
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

void* Backend::thread_pool() const {
    return impl_->pool;
}

}  // namespace knap

#include "device/host_memory.h"

#include <cstdint>

#include "ggml-backend.h"

#include <sys/mman.h>

#include "base/error.h"
#include "device/backend.h"

namespace knap {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::byte* align_up(void* address, std::size_t alignment) {
    const auto number = reinterpret_cast<std::uintptr_t>(address);
    return static_cast<std::byte*>(address) + (alignment - number % alignment) % alignment;
}

}  // namespace

bool HostMemory::is_usable_by(const Backend& backend) {
    ggml_backend_dev_props properties;
    ggml_backend_dev_get_props(backend.device(), &properties);
    return properties.caps.buffer_from_host_ptr;
}

HostMemory::HostMemory(const Backend& backend,
                       std::size_t n_bytes,
                       Pages pages,
                       std::string_view what)
    : mapped_(pages == Pages::huge ? n_bytes + kHugePage : n_bytes) {
    mapping_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping_ == MAP_FAILED) {
        fail("memory: expected ", n_bytes >> 20, " MiB for ", what, ", found less");
    }
    data_ = static_cast<std::byte*>(mapping_);
    if (pages == Pages::huge) {
        data_ = align_up(mapping_, kHugePage);
        madvise(data_, n_bytes, MADV_HUGEPAGE);  // a wish: without it all works, a little slower
    }
    buffer_.reset(ggml_backend_dev_buffer_from_host_ptr(backend.device(), data_, n_bytes, 0));
    KNAP_ASSERT(buffer_ != nullptr, "a host device takes page-aligned memory");
}

HostMemory::~HostMemory() {
    buffer_.reset();
    munmap(mapping_, mapped_);
}

}  // namespace knap

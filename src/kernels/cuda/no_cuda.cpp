// What builds without CUDA have in place of the .cu files: no devices and no kernels, and memory of
// the host.
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "kernels/cuda/device_memory.h"
#include "kernels/cuda/packing.h"
#include "kernels/cuda/prefill/prefill.h"
#include "kernels/cuda/results/best_tokens.h"
#include "kernels/cuda/results/stream_rows.h"
#include "kernels/cuda/step.h"

namespace knap {
namespace {

std::byte* new_bytes(std::size_t n_bytes, const char* what) {
    void* data = std::calloc(n_bytes, 1);
    if (data == nullptr && n_bytes > 0) {
        fail("expected ", n_bytes, " bytes of memory for ", what);
    }
    return static_cast<std::byte*>(data);
}

[[noreturn]] void no_kernels() {
    assertion_failed("has_cuda_kernels()", "kernels are called only where there are some", __FILE__,
                     __LINE__);
}

}  // namespace

bool has_cuda_kernels() {
    return false;
}

CudaDevice find_cuda_device(const std::string&) {
    return {};
}

void use_device(const CudaDevice&) {}

CudaMemory::CudaMemory(std::size_t n_bytes, const char* what)
    : data_(new_bytes(n_bytes, what)), n_bytes_(n_bytes) {}

CudaMemory::~CudaMemory() {
    std::free(data_);
}

CudaMemory::CudaMemory(CudaMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), n_bytes_(std::exchange(other.n_bytes_, 0)) {}

CudaMemory& CudaMemory::operator=(CudaMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(n_bytes_, other.n_bytes_);
    return *this;
}

PinnedMemory::PinnedMemory(std::size_t n_bytes)
    : data_(new_bytes(n_bytes, "copies")), n_bytes_(n_bytes) {}

PinnedMemory::~PinnedMemory() {
    std::free(data_);
}

PinnedMemory::PinnedMemory(PinnedMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), n_bytes_(std::exchange(other.n_bytes_, 0)) {}

PinnedMemory& PinnedMemory::operator=(PinnedMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(n_bytes_, other.n_bytes_);
    return *this;
}

CudaStream::CudaStream() = default;
CudaStream::~CudaStream() = default;

void CudaStream::upload(void* to, const void* from, std::size_t n_bytes) {
    std::memcpy(to, from, n_bytes);
}

void CudaStream::download(void* to, const void* from, std::size_t n_bytes) {
    std::memcpy(to, from, n_bytes);
}

void CudaStream::copy(void* to, const void* from, std::size_t n_bytes) {
    std::memcpy(to, from, n_bytes);
}

void CudaStream::copy_rows(void* to,
                           std::size_t to_pitch,
                           const void* from,
                           std::size_t from_pitch,
                           std::size_t width,
                           std::size_t n_rows) {
    for (std::size_t row = 0; row < n_rows; ++row) {
        std::memcpy(static_cast<std::byte*>(to) + row * to_pitch,
                    static_cast<const std::byte*>(from) + row * from_pitch, width);
    }
}

void CudaStream::copy_planes(const PlaneCopy& copy) {
    const std::size_t plane = copy.pitch * copy.plane_rows;
    for (std::size_t i = 0; i < copy.n_planes; ++i) {
        copy_rows(copy.to + i * plane, copy.pitch, copy.from + i * plane, copy.pitch, copy.width,
                  copy.n_rows);
    }
}

void CudaStream::wait() {}

void pack_strips(void*, ggml_type, std::int64_t, std::int64_t) {
    no_kernels();
}

StepPlan plan_step(const CudaDevice&, const StepNeeds&) {
    no_kernels();
}

void run_step(
    const StepPlan&, const CudaShape&, const CudaBuffers&, const CudaPassData&, const CudaStream&) {
    no_kernels();
}

void list_best_tokens(const float*, int, int, int, std::uint64_t*, const CudaStream&) {
    no_kernels();
}

void take_rows(const BankPlaces&, float*, const CudaStream&) {
    no_kernels();
}

void put_rows(const BankPlaces&, const float*, const CudaStream&) {
    no_kernels();
}

void compare_rows(const BankPlaces&, const float*, float*, const CudaStream&) {
    no_kernels();
}

void run_prefill(const CudaDevice&,
                 const CudaShape&,
                 const CudaBuffers&,
                 const CudaPassData&,
                 const PrefillPlan&,
                 const CudaStream&) {
    no_kernels();
}

}  // namespace knap

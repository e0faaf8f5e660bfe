#include <charconv>
#include <string_view>
#include <utility>

#include <cuda_runtime.h>

#include "base/error.h"
#include "base/number_text.h"
#include "kernels/cuda/device_memory.h"

namespace knap {
namespace {

// `action` is what was being done, such as "copying".
void check(cudaError_t status, const char* action) {
    if (status != cudaSuccess) {
        cudaGetLastError();  // so that the next call does not report it again
        fail("CUDA: ", action, " failed: ", cudaGetErrorString(status));
    }
}

cudaStream_t stream_of(void* handle) {
    return static_cast<cudaStream_t>(handle);
}

// The number in "CUDA<number>"; -1: another name.
int parse_index(std::string_view name) {
    constexpr std::string_view kPrefix = "CUDA";
    if (!name.starts_with(kPrefix)) {
        return -1;
    }
    int index = -1;
    const char* end = name.data() + name.size();
    const auto [rest, error] = std::from_chars(name.data() + kPrefix.size(), end, index);
    return error == std::errc() && rest == end ? index : -1;
}

int attribute(cudaDeviceAttr which, int index) {
    int value = 0;
    check(cudaDeviceGetAttribute(&value, which, index), "asking for a device's properties");
    return value;
}

std::string device_name(int index) {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, index), "asking for a device's name");
    return properties.name;
}

}  // namespace

bool has_cuda_kernels() {
    return true;
}

CudaDevice find_cuda_device(const std::string& ggml_name) {
    const int index = parse_index(ggml_name);
    int n_devices = 0;
    if (index < 0 || cudaGetDeviceCount(&n_devices) != cudaSuccess || index >= n_devices) {
        return {};
    }
    return {.index = index,
            .capability = 10 * attribute(cudaDevAttrComputeCapabilityMajor, index) +
                          attribute(cudaDevAttrComputeCapabilityMinor, index),
            .n_processors = attribute(cudaDevAttrMultiProcessorCount, index),
            .shared_bytes =
                static_cast<std::size_t>(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, index)),
            .name = device_name(index)};
}

void use_device(const CudaDevice& device) {
    check(cudaSetDevice(device.index), "choosing a device");
}

CudaMemory::CudaMemory(std::size_t n_bytes, const char* what) : n_bytes_(n_bytes) {
    void* data = nullptr;
    if (const cudaError_t status = cudaMalloc(&data, n_bytes); status != cudaSuccess) {
        cudaGetLastError();
        fail("CUDA: expected ", format_gib(n_bytes, 2), " of device memory for ", what, ": ",
             cudaGetErrorString(status));
    }
    // Streams do not wait for what has no stream, so this does.
    cudaError_t status = cudaMemset(data, 0, n_bytes);
    status = status == cudaSuccess ? cudaDeviceSynchronize() : status;
    if (status != cudaSuccess) {
        cudaFree(data);
    }
    check(status, "clearing memory");
    data_ = static_cast<std::byte*>(data);
}

CudaMemory::~CudaMemory() {
    cudaFree(data_);
}

CudaMemory::CudaMemory(CudaMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), n_bytes_(std::exchange(other.n_bytes_, 0)) {}

CudaMemory& CudaMemory::operator=(CudaMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(n_bytes_, other.n_bytes_);
    return *this;
}

PinnedMemory::PinnedMemory(std::size_t n_bytes) : n_bytes_(n_bytes) {
    void* data = nullptr;
    check(cudaMallocHost(&data, n_bytes), "allocating pinned memory");
    data_ = static_cast<std::byte*>(data);
}

PinnedMemory::~PinnedMemory() {
    cudaFreeHost(data_);
}

PinnedMemory::PinnedMemory(PinnedMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), n_bytes_(std::exchange(other.n_bytes_, 0)) {}

PinnedMemory& PinnedMemory::operator=(PinnedMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(n_bytes_, other.n_bytes_);
    return *this;
}

CudaStream::CudaStream() {
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
    handle_ = stream;
}

CudaStream::~CudaStream() {
    cudaStreamDestroy(stream_of(handle_));
}

void CudaStream::upload(void* to, const void* from, std::size_t n_bytes) {
    check(cudaMemcpyAsync(to, from, n_bytes, cudaMemcpyHostToDevice, stream_of(handle_)),
          "copying to the device");
}

void CudaStream::download(void* to, const void* from, std::size_t n_bytes) {
    check(cudaMemcpyAsync(to, from, n_bytes, cudaMemcpyDeviceToHost, stream_of(handle_)),
          "copying from the device");
}

void CudaStream::copy(void* to, const void* from, std::size_t n_bytes) {
    check(cudaMemcpyAsync(to, from, n_bytes, cudaMemcpyDeviceToDevice, stream_of(handle_)),
          "copying on the device");
}

void CudaStream::copy_rows(void* to,
                           std::size_t to_pitch,
                           const void* from,
                           std::size_t from_pitch,
                           std::size_t width,
                           std::size_t n_rows) {
    check(cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, n_rows, cudaMemcpyDefault,
                            stream_of(handle_)),
          "copying rows");
}

void CudaStream::copy_planes(const PlaneCopy& copy) {
    const auto pitched = [&](const std::byte* data) {
        return make_cudaPitchedPtr(const_cast<std::byte*>(data), copy.pitch, copy.width,
                                   copy.plane_rows);
    };
    cudaMemcpy3DParms parameters{};
    parameters.srcPtr = pitched(copy.from);
    parameters.dstPtr = pitched(copy.to);
    parameters.extent = make_cudaExtent(copy.width, copy.n_rows, copy.n_planes);
    parameters.kind = cudaMemcpyDeviceToDevice;
    check(cudaMemcpy3DAsync(&parameters, stream_of(handle_)), "copying planes");
}

void CudaStream::wait() {
    check(cudaStreamSynchronize(stream_of(handle_)), "work on the device");
}

}  // namespace knap

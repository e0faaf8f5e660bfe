// Memory of an NVIDIA GPU and of the host beside it, and copies between them. All of it is on the
// device that is current on the calling thread: see use_device(). Without CUDA (no_cuda.cpp) it is
// ordinary memory, so that what is built on it can be tested anywhere.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace knap {

// What the GPU with ggml's name "CUDA<n>" can do.
struct CudaDevice {
    int index = -1;
    int capability = 0;            // 90 for 9.0
    int n_processors = 0;          // streaming multiprocessors
    std::size_t shared_bytes = 0;  // that one block may have
    std::string name{};            // "NVIDIA H200"
};

// Whether this build has the CUDA kernels.
bool has_cuda_kernels();
// The device with ggml's name, or of index -1 if the name is not that of an NVIDIA GPU.
CudaDevice find_cuda_device(const std::string& ggml_name);
// Makes a device the current one of the calling thread.
void use_device(const CudaDevice& device);

// Zeroed memory on the device. Throws knap::Error, which says what the memory is for, when there is
// not enough.
class CudaMemory {
  public:
    CudaMemory() = default;
    CudaMemory(std::size_t n_bytes, const char* what);
    ~CudaMemory();
    CudaMemory(CudaMemory&& other) noexcept;
    CudaMemory& operator=(CudaMemory&& other) noexcept;

    std::byte* data() const { return data_; }
    std::size_t bytes() const { return n_bytes_; }
    template <typename T>
    T* as() const {
        return reinterpret_cast<T*>(data_);
    }

  private:
    std::byte* data_ = nullptr;
    std::size_t n_bytes_ = 0;
};

// Host memory that the device copies from and to by itself.
class PinnedMemory {
  public:
    PinnedMemory() = default;
    explicit PinnedMemory(std::size_t n_bytes);
    ~PinnedMemory();
    PinnedMemory(PinnedMemory&& other) noexcept;
    PinnedMemory& operator=(PinnedMemory&& other) noexcept;

    std::byte* data() const { return data_; }
    std::size_t bytes() const { return n_bytes_; }
    template <typename T>
    T* as() const {
        return reinterpret_cast<T*>(data_);
    }

  private:
    std::byte* data_ = nullptr;
    std::size_t n_bytes_ = 0;
};

// A copy of part of every plane: `n_rows` rows of `width` bytes. Rows are `pitch` bytes apart,
// planes `plane_rows` rows.
struct PlaneCopy {
    std::byte* to = nullptr;  // in the first plane
    const std::byte* from = nullptr;
    std::size_t pitch = 0;
    std::size_t width = 0;
    std::size_t n_rows = 0;
    std::size_t plane_rows = 0;
    std::size_t n_planes = 0;
};

// Work of the device in order. Copies and kernels of one stream run one after the other.
class CudaStream {
  public:
    CudaStream();
    ~CudaStream();
    CudaStream(const CudaStream&) = delete;
    CudaStream& operator=(const CudaStream&) = delete;

    void* handle() const { return handle_; }
    // The host memory must stay as it is until wait() returns.
    void upload(void* to, const void* from, std::size_t n_bytes);
    void download(void* to, const void* from, std::size_t n_bytes);
    void copy(void* to, const void* from, std::size_t n_bytes);  // both on the device
    // Rows of `width` bytes, `n_rows` of them, each `pitch` bytes after the one before. Either end
    // may be on the host or on the device.
    void copy_rows(void* to,
                   std::size_t to_pitch,
                   const void* from,
                   std::size_t from_pitch,
                   std::size_t width,
                   std::size_t n_rows);
    void copy_planes(const PlaneCopy& copy);  // both on the device
    // Until all work is done. Throws knap::Error if some of it failed.
    void wait();

  private:
    void* handle_ = nullptr;
};

}  // namespace knap

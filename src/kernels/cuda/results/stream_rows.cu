#include "kernels/cuda/cuda_check.h"
#include "kernels/cuda/results/stream_rows.h"

namespace knap {
namespace {

constexpr int kThreads = 256;

__device__ float* bank_row(const BankPlaces& places) {
    return places.bank + static_cast<std::size_t>(__ldg(places.rows + blockIdx.x)) *
                             static_cast<std::size_t>(places.n_embd);
}

__device__ std::size_t own_row(const BankPlaces& places) {
    return static_cast<std::size_t>(blockIdx.x) * static_cast<std::size_t>(places.n_embd);
}

// A block has a row.
__global__ void __launch_bounds__(kThreads) take_kernel(const BankPlaces places, float* to) {
    const float* from = bank_row(places);
    to += own_row(places);
    for (int i = static_cast<int>(threadIdx.x); i < places.n_embd; i += kThreads) {
        to[i] = from[i];
    }
}

__global__ void __launch_bounds__(kThreads) put_kernel(const BankPlaces places, const float* from) {
    float* to = bank_row(places);
    from += own_row(places);
    for (int i = static_cast<int>(threadIdx.x); i < places.n_embd; i += kThreads) {
        to[i] = from[i];
    }
}

// A warp has a row; a lane adds every 32nd product.
__global__ void __launch_bounds__(32)
    compare_kernel(const BankPlaces places, const float* with, float* cosines) {
    const float* a = with + own_row(places);
    const float* b = bank_row(places);
    double ab = 0;
    double aa = 0;
    double bb = 0;
    for (int i = static_cast<int>(threadIdx.x); i < places.n_embd; i += 32) {
        const double x = a[i];
        const double y = b[i];
        ab += x * y;
        aa += x * x;
        bb += y * y;
    }
    for (int step = 16; step > 0; step /= 2) {
        ab += __shfl_xor_sync(~0u, ab, step);
        aa += __shfl_xor_sync(~0u, aa, step);
        bb += __shfl_xor_sync(~0u, bb, step);
    }
    if (threadIdx.x == 0) {
        const double norms = sqrt(aa) * sqrt(bb);
        cosines[blockIdx.x] = norms == 0 ? 0.0f : static_cast<float>(ab / norms);
    }
}

cudaStream_t handle_of(const CudaStream& stream) {
    return static_cast<cudaStream_t>(stream.handle());
}

}  // namespace

void take_rows(const BankPlaces& places, float* to, const CudaStream& stream) {
    take_kernel<<<static_cast<unsigned>(places.n_rows), kThreads, 0, handle_of(stream)>>>(places,
                                                                                          to);
    check_cuda(cudaGetLastError(), "taking rows of a bank");
}

void put_rows(const BankPlaces& places, const float* from, const CudaStream& stream) {
    put_kernel<<<static_cast<unsigned>(places.n_rows), kThreads, 0, handle_of(stream)>>>(places,
                                                                                         from);
    check_cuda(cudaGetLastError(), "storing rows in a bank");
}

void compare_rows(const BankPlaces& places,
                  const float* with,
                  float* cosines,
                  const CudaStream& stream) {
    compare_kernel<<<static_cast<unsigned>(places.n_rows), 32, 0, handle_of(stream)>>>(places, with,
                                                                                       cosines);
    check_cuda(cudaGetLastError(), "comparing rows with a bank");
}

}  // namespace knap

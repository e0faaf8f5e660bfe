#include "cuda/cuda_stream_bank.h"

#include <algorithm>

#include "base/error.h"
#include "kernels/cuda/results/stream_rows.h"

namespace knap {

CudaStreamBank::CudaStreamBank(std::size_t n_rows, int n_embd)
    : n_rows_(n_rows),
      n_embd_(n_embd),
      memory_(n_rows * static_cast<std::size_t>(n_embd) * sizeof(float), "streams of searches") {}

std::shared_ptr<CudaStreamBank> CudaStreamBank::make(std::size_t n_rows, int n_embd) {
    try {
        // No make_shared: the constructor is private.
        return std::shared_ptr<CudaStreamBank>(new CudaStreamBank(n_rows, n_embd));
    } catch (const Error&) {
        return nullptr;  // streams go through host memory
    }
}

void CudaStreamBank::take(const BankPass& pass, float* streams, const CudaStream& stream) const {
    take_rows({.bank = memory_.as<float>(),
               .rows = pass.on_device,
               .n_rows = pass.n_rows,
               .n_embd = n_embd_},
              streams, stream);
}

void CudaStreamBank::keep(const BankPass& pass,
                          const float* captures,
                          float* cosines,
                          const CudaStream& stream) const {
    const int* captured = pass.on_device + pass.rows.hidden.size();
    const int* compared = captured + pass.rows.captured.size();
    const auto n_rows = static_cast<std::size_t>(pass.n_rows);
    const std::size_t n_all = std::max(pass.rows.captured.size(), pass.rows.compared.size());
    for (std::size_t first = 0; first < n_all; first += n_rows) {
        const float* streams = captures + first * static_cast<std::size_t>(n_embd_);
        const auto places = [&](const int* rows) {
            return BankPlaces{.bank = memory_.as<float>(),
                              .rows = rows + first,
                              .n_rows = pass.n_rows,
                              .n_embd = n_embd_};
        };
        if (!pass.rows.compared.empty()) {
            compare_rows(places(compared), streams, cosines + first, stream);
        }
        if (!pass.rows.captured.empty()) {
            put_rows(places(captured), streams, stream);
        }
    }
}

}  // namespace knap

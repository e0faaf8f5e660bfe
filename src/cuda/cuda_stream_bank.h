// A bank of streams in the memory of a GPU, and what passes do with its rows.
#pragma once

#include <cstddef>
#include <memory>

#include "forward/pass.h"
#include "forward/stream_bank.h"
#include "kernels/cuda/device_memory.h"

namespace knap {

// A pass that uses a bank.
struct BankPass {
    BankRows rows{};                 // on the host
    const int* on_device = nullptr;  // the same, one after the other
    int n_rows = 0;                  // of the pass

    bool keeps_streams() const { return !rows.captured.empty() || !rows.compared.empty(); }
};

class CudaStreamBank final : public StreamBank {
  public:
    // Null if the device lacks the memory.
    static std::shared_ptr<CudaStreamBank> make(std::size_t n_rows, int n_embd);

    std::size_t n_rows() const { return n_rows_; }
    std::size_t bytes() const { return memory_.bytes(); }

    // Copies the rows that the pass resumes from to `streams` [n_rows][n_embd].
    void take(const BankPass& pass, float* streams, const CudaStream& stream) const;
    // Compares captures [n_captures][n_rows][n_embd] with rows of the bank and stores them there,
    // one after the other: a later one may be compared with what an earlier one stored.
    void keep(const BankPass& pass,
              const float* captures,
              float* cosines,
              const CudaStream& stream) const;

  private:
    CudaStreamBank(std::size_t n_rows, int n_embd);

    std::size_t n_rows_;
    int n_embd_;
    CudaMemory memory_;
};

}  // namespace knap

// Rows of residual streams between a pass and a bank of rows, by index. All pointers are to the
// device's memory.
#pragma once

#include "kernels/cuda/device_memory.h"

namespace knap {

// Rows of a bank: those at `rows` [n_rows], of n_embd numbers each.
struct BankPlaces {
    float* bank = nullptr;
    const int* rows = nullptr;
    int n_rows = 0;
    int n_embd = 0;
};

// Copies the bank's rows to `to` [n_rows][n_embd].
void take_rows(const BankPlaces& places, float* to, const CudaStream& stream);
// Copies `from` [n_rows][n_embd] to the bank's rows.
void put_rows(const BankPlaces& places, const float* from, const CudaStream& stream);
// The cosine of each row of `with` with the bank's: as cosine() in search/cosine.h, in double.
void compare_rows(const BankPlaces& places,
                  const float* with,
                  float* cosines,
                  const CudaStream& stream);

}  // namespace knap

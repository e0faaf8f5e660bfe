// The kernels of each instruction set. Those marked with an architecture are linked only there.
#pragma once

#include "kernels/matmul/matmul.h"

namespace knap {

extern const MatmulKernel kPlainMatmul;
extern const MatmulKernel kNeonMatmul;     // aarch64
extern const MatmulKernel kAvx2Matmul;     // x86-64
extern const MatmulKernel kAvxVnniMatmul;  // x86-64
extern const MatmulKernel kAvx512Matmul;   // x86-64
// What kAvx512Matmul multiplies, many rows with tile registers.
void multiply_with_amx(const Product& product);  // x86-64

}  // namespace knap

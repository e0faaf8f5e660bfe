// The kernels of each instruction set. Those marked with an architecture are linked only there.
#pragma once

#include "kernels/attention/attention.h"

namespace knap {

extern const AttentionKernel kPlainAttention;
extern const AttentionKernel kNeonAttention;    // aarch64
extern const AttentionKernel kAvx2Attention;    // x86-64
extern const AttentionKernel kAvx512Attention;  // x86-64

}  // namespace knap

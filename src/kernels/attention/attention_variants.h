// The kernels by instruction set. Those of other machines are not linked there.
#pragma once

#include "kernels/attention/attention.h"

namespace knap {

extern const AttentionKernel kPlainAttention;
extern const AttentionKernel kAvx2Attention;    // x86-64
extern const AttentionKernel kAvx512Attention;  // x86-64

}  // namespace knap

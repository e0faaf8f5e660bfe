// The kernels by instruction set. Those of other machines are not linked there.
#pragma once

#include "kernels/attention/heads.h"

namespace knap {

extern const HeadsKernel kPlainHeads;
extern const HeadsKernel kAvx2Heads;    // x86-64
extern const HeadsKernel kAvx512Heads;  // x86-64

}  // namespace knap

// The kernels of each instruction set. Those marked x86-64 are linked only there.
#pragma once

#include "kernels/attention/heads.h"

namespace knap {

extern const HeadsKernel kPlainHeads;
extern const HeadsKernel kAvx2Heads;    // x86-64
extern const HeadsKernel kAvx512Heads;  // x86-64

}  // namespace knap

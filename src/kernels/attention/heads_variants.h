// The kernels of each instruction set. Those marked with an architecture are linked only there.
#pragma once

#include "kernels/attention/heads.h"

namespace knap {

extern const HeadsKernel kPlainHeads;
extern const HeadsKernel kNeonHeads;    // aarch64
extern const HeadsKernel kAvx2Heads;    // x86-64
extern const HeadsKernel kAvx512Heads;  // x86-64

}  // namespace knap

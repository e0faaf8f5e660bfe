#include "kernels/heads.h"

#include <vector>

#include "kernels/heads_variants.h"
#include "kernels/isa.h"

namespace knap {
namespace {

std::vector<HeadsKernel> find_kernels() {
    std::vector<HeadsKernel> kernels;
#if defined(__x86_64__)
    if (may_use(Isa::avx512)) {
        kernels.push_back(kAvx512Heads);
    }
    if (may_use(Isa::avx2)) {
        kernels.push_back(kAvx2Heads);
    }
#endif
    kernels.push_back(kPlainHeads);
    return kernels;
}

}  // namespace

std::span<const HeadsKernel> heads_kernels() {
    static const std::vector<HeadsKernel> kernels = find_kernels();
    return kernels;
}

}  // namespace knap
